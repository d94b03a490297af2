# bash completion of gnnc: `gnnc help bash` wrote it
_gnnc() {
    local cur=${COMP_WORDS[COMP_CWORD]} option= words= kind= of=gnnc
    [ "${COMP_WORDS[1]}" = import ] && [ "$COMP_CWORD" -gt 1 ] && of=import
    if [ "$cur" = = ]; then
        cur= option=${COMP_WORDS[COMP_CWORD-1]}
    elif [ "${COMP_WORDS[COMP_CWORD-1]}" = = ]; then
        option=${COMP_WORDS[COMP_CWORD-2]}
    else
        option=${COMP_WORDS[COMP_CWORD-1]}
    fi
    COMPREPLY=()
    case $of:$option in
    gnnc:-o) kind=file ;;
    gnnc:--name) kind=text ;;
    gnnc:--runtime) words='own shared' ;;
    gnnc:-MF) kind=file ;;
    gnnc:-D) kind=text ;;
    gnnc:--model) kind=text ;;
    gnnc:-I) kind=directory ;;
    gnnc:--emit) words='exe lib python ast ir plan loops llvm asm obj c cuda header none infer' ;;
    gnnc:--embed) kind=text ;;
    gnnc:--target) words='auto cpu cuda' ;;
    gnnc:--march) kind=text ;;
    gnnc:--cuda-arch) kind=text ;;
    gnnc:--spmm) words='own auto cusparse' ;;
    gnnc:--specialize) kind=directory ;;
    gnnc:--precision) words='f32 bf16 f16 auto tf32' ;;
    gnnc:--data) kind=directory ;;
    gnnc:--passes) words='density canon cse dce serve trim one-hot reorder unroll loss-scale autodiff optimizer aggregate masks dots shares lower-csr hoist turn breaks fuse remat precision carry form-kernels order-steps block-rows epilogues delay-sums gather-parts join-kernels group-products lifetimes sparse-products sync-removal fold-unit-dims interchange promote-scalars vectorise cse-loops forward-stores distribute reorder-loops dce-loops fission schedule' ;;
    gnnc:--print-before) words='all density canon cse dce serve trim one-hot reorder unroll loss-scale autodiff optimizer aggregate masks dots shares lower-csr hoist turn breaks fuse remat precision carry form-kernels order-steps block-rows epilogues delay-sums gather-parts join-kernels group-products lifetimes sparse-products sync-removal fold-unit-dims interchange promote-scalars vectorise cse-loops forward-stores distribute reorder-loops dce-loops fission schedule' ;;
    gnnc:--print-after) words='all density canon cse dce serve trim one-hot reorder unroll loss-scale autodiff optimizer aggregate masks dots shares lower-csr hoist turn breaks fuse remat precision carry form-kernels order-steps block-rows epilogues delay-sums gather-parts join-kernels group-products lifetimes sparse-products sync-removal fold-unit-dims interchange promote-scalars vectorise cse-loops forward-stores distribute reorder-loops dce-loops fission schedule' ;;
    gnnc:--print-changed) words='text diff' ;;
    gnnc:--print-filter) kind=text ;;
    gnnc:--disable-pass) words='density canon cse trim one-hot reorder loss-scale aggregate masks dots shares hoist turn breaks fuse remat carry order-steps block-rows epilogues delay-sums gather-parts join-kernels group-products sparse-products sync-removal fold-unit-dims interchange promote-scalars vectorise cse-loops forward-stores distribute reorder-loops dce-loops fission schedule' ;;
    gnnc:--stop-after) words='density canon cse dce serve trim one-hot reorder unroll loss-scale autodiff optimizer aggregate masks dots shares lower-csr hoist turn breaks fuse remat precision carry form-kernels order-steps block-rows epilogues delay-sums gather-parts join-kernels group-products lifetimes sparse-products sync-removal fold-unit-dims interchange promote-scalars vectorise cse-loops forward-stores distribute reorder-loops dce-loops fission schedule' ;;
    gnnc:--report) words='all shapes breaks fusion syncs memory precision' ;;
    gnnc:--report-format) words='text json' ;;
    gnnc:--variant) kind=text ;;
    import:-o) kind=directory ;;
    import:--scaffold) kind=file ;;
    import:--node) kind=text ;;
    import:--edge) kind=text ;;
    import:--edges) kind=text ;;
    import:--kind) kind=text ;;
    import:--features) kind=text ;;
    import:--map) kind=file ;;
    import:--write-map) kind=file ;;
    import:--given) kind=text ;;
    import:--dangling) kind=text ;;
    import:--like) kind=text ;;
    import:--rare) kind=text ;;
    import:--split) kind=text ;;
    import:--row-time) kind=text ;;
    import:--by-time) kind=text ;;
    import:--seed) kind=text ;;
    import:--predict) kind=text ;;
    import:--task) kind=text ;;
    import:--task-sql) kind=file ;;
    import:--val-time) kind=text ;;
    import:--test-time) kind=text ;;
    import:--every) kind=text ;;
    import:--nodes) kind=text ;;
    import:--header) kind=text ;;
    import:--name) kind=text ;;
    import:--source) kind=text ;;
    import:--licence) kind=text ;;
    gnnc:help) [ "$COMP_CWORD" = 2 ] && words='man bash zsh fish' ;;
    esac
    case $kind in
    directory) compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -d -- "$cur")
        return ;;
    file) compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return ;;
    text) return ;;
    esac
    if [ -z "$words" ]; then
        case $of:$cur in
        gnnc:-*) words='-o --name= --runtime= -MD -MF -D --model= -I -O0 -O2 --emit= --infer --no-rows --draw --embed= --target= --march= --cuda-arch= --spmm= --specialize= --precision= --data= --grads --passes= --print-before= --print-after= --print-changed= --print-filter= --disable-pass= --stop-after= --verify-each --time-passes --report= --report-format= --variant= --keep -v --version --help -O -O1 -O3 -h -V' ;;
        import:-*) words='-o --force --scaffold= --node= --edge= --edges= --kind= --features= --relation-types --map= --write-map= --given= --dangling= --standardize --unknown --like= --rare= --normalize-rows --split= --row-time= --by-time= --seed= --replace-split --predict= --task= --task-sql= --label-history --val-time= --test-time= --every= --undirected --nodes= --header= --skip-bad --name= --source= --licence= --help' ;;
        *) compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -f -- "$cur")
            [ "$COMP_CWORD" = 1 ] && COMPREPLY+=($(compgen -W 'check opt import export help' -- "$cur"))
            return ;;
        esac
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
    [[ ${#COMPREPLY[@]} = 1 && ${COMPREPLY[0]} = *= ]] && compopt -o nospace 2>/dev/null
}
complete -F _gnnc gnnc
