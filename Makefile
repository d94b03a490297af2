# gnnc: `make` builds the compiler and the runtime into build/, `make demo` trains
# GCN on Cora, `make test` runs every test.  Both install what is missing first.
CC ?= cc
BUILD ?= build
PREFIX ?= /usr/local
FLEX ?= flex
BISON ?= bison
ifndef LLVM_CONFIG
LLVM_CONFIG := $(firstword $(foreach v,-19 -20 -18,$(shell command -v llvm-config$v)) llvm-config)
endif

WARN = -Wall -Wextra -Wpedantic -Wno-overlength-strings -Werror
OPT ?= -O2 -g
# Behind OPT, for the compiler's objects alone, and for those of tests: -O0 where they are built to be run little.
OPT_COMPILER ?=
OPT_TESTS ?=
CFLAGS_ALL = -std=c17 -D_GNU_SOURCE $(WARN) $(OPT) -fno-omit-frame-pointer -fvisibility=hidden $(SAN) -MMD -MP
INC_COMPILER = -I. -Iruntime/include -I$(BUILD)/gen
LLVM_CFLAGS := $(shell $(LLVM_CONFIG) --cflags 2>/dev/null | sed 's/-I/-isystem /; s/-D_GNU_SOURCE//')
LLVM_LIBS := $(shell $(LLVM_CONFIG) --ldflags --libs core analysis passes native 2>/dev/null)

# ---- sources by wildcard: a new file is built without a word here ------------
GEN = $(BUILD)/gen/frontend/syntax/lex.c $(BUILD)/gen/frontend/syntax/grammar.c $(BUILD)/gen/codegen/page.c
COMPILER_SRC = $(filter-out frontend/main.c frontend/source/%,$(wildcard frontend/*.c frontend/*/*.c)) \
    $(wildcard ir/*.c ir/op/*.c passes/*.c codegen/*.c codegen/*/*.c)
COMPILER_OBJ = $(COMPILER_SRC:%.c=$(BUILD)/%.o) $(GEN:%.c=%.o)
RUNTIME_SRC = $(filter-out runtime/cuda/% runtime/infer/% runtime/mpi/%,$(wildcard runtime/*.c runtime/*/*.c))
RUNTIME_OBJ = $(RUNTIME_SRC:%.c=$(BUILD)/%.o)
# Of these what programs that only predict may need: no command line, no import, no library, no device, no f32 on AMX.
INFER_OBJ = $(filter-out $(addprefix $(BUILD)/runtime/,cli/% import/% partition/% explain/% sample/sample_cluster.o \
    gemm/gemm_serial.o gemm/gemm_pieces.o device/device.o device/device_batch.o device/device_phase.o device/device_record.o device/device_spmm.o \
    device/device_bind.o device/device_held.o device/device_maps.o device/device_own.o device/device_rows.o device/device_pinned.o exec/profile.o trainer/profile.o trainer/limits.o index_file.o data/cache.o),$(RUNTIME_OBJ)) \
    $(BUILD)/runtime/gemm/gemm_serial_plain.o $(BUILD)/runtime/infer/host_only.o
UNIT = $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%,$(wildcard tests/unit/*_test.c))

MPICC := $(shell command -v mpicc)
HELPS = $(addprefix $(BUILD)/help.,man bash zsh fish)
all: $(HELPS) $(BUILD)/gnnc $(BUILD)/libgnncc.so $(BUILD)/libgnnrt.a $(BUILD)/libgnnrt_infer.a $(BUILD)/infer.flags $(BUILD)/libgnnrt.so cuda $(if $(MPICC),$(BUILD)/gnnrt_mpi.o $(BUILD)/mpi.flags)

# Said before the compiler is compiled: which tool is missing, and how to get it.
need = command -v $(1) >/dev/null || { echo "gnnc needs $(2), and there is no '$(1)' here;" \
    "sh tests/tools/install-deps.sh build" >&2; exit 1; }
$(BUILD)/tools.ok:
	@mkdir -p $(@D)
	@$(call need,$(FLEX),flex)
	@$(call need,$(BISON),GNU bison)
	@$(call need,$(LLVM_CONFIG),LLVM 18 to 20)
	@v=$$($(LLVM_CONFIG) --version) && case $$v in 18* | 19* | 20*) touch $@ ;; \
	    *) echo "gnnc needs LLVM 18 to 20, not $$v: make LLVM_CONFIG=..." >&2; exit 1 ;; esac

# A word of the shell: directories may have blanks and quotes in their names.
quoted = '$(subst ','\'',$(1))'
# What gnnc import reads databases with, where their headers are: linked by gnnc alone.
SOURCE_SQLITE := $(wildcard /usr/include/sqlite3.h)
SOURCE_POSTGRES := $(firstword $(wildcard /usr/include/postgresql/libpq-fe.h /usr/include/libpq-fe.h))
SOURCE_PNG := $(wildcard /usr/include/png.h)
SOURCE_JPEG := $(wildcard /usr/include/jpeglib.h)
SOURCE_YAML := $(wildcard /usr/include/yaml.h)
SOURCE_LIBS = $(if $(SOURCE_YAML),-lyaml) $(if $(SOURCE_SQLITE),-lsqlite3) $(if $(SOURCE_POSTGRES),-lpq) $(if $(SOURCE_PNG),-lpng) $(if $(SOURCE_JPEG),-ljpeg)
SOURCE_OBJ = $(patsubst %,$(BUILD)/frontend/source/%.o,source export export_json image options partition $(if $(SOURCE_SQLITE),sqlite sqlite_write) $(if $(SOURCE_POSTGRES),postgres postgres_write) $(if $(SOURCE_YAML),yaml relbench parquet arrow_ipc))
SOURCE_CC = -DSOURCE_HAVE_YAML=$(if $(SOURCE_YAML),1,0) -DSOURCE_HAVE_PNG=$(if $(SOURCE_PNG),1,0) -DSOURCE_HAVE_JPEG=$(if $(SOURCE_JPEG),1,0) \
    -DSOURCE_HAVE_SQLITE=$(if $(SOURCE_SQLITE),1,0) -DSOURCE_HAVE_POSTGRES=$(if $(SOURCE_POSTGRES),1,0) \
    $(if $(filter %/postgresql/libpq-fe.h,$(SOURCE_POSTGRES)),-isystem $(patsubst %/,%,$(dir $(SOURCE_POSTGRES))))
$(BUILD)/source.flags: FLAGS = $(SOURCE_CC) $(SOURCE_LIBS)
$(SOURCE_OBJ): $(BUILD)/source.flags
$(BUILD)/frontend/source/%.o: frontend/source/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(SOURCE_CC) $(INC_COMPILER) -c -o $@ $<

# What libgnnrt.a needs, an argument a line; gnnc reads link.flags to link trainers with the same.
RT_LIBS = $(GEMM_LIB) $(METIS_LIB) -lgomp -pthread -lz -lm
# Written anew only when it says something else: a library installed later is then taken up.
$(BUILD)/link.flags: FLAGS = $(RT_LIBS)
# .. and libgnnrt_infer.a.
$(BUILD)/infer.flags: FLAGS = -Wl,--gc-sections -pthread -lm
# What the runtime is compiled with, so that it is compiled anew when that changes.
$(BUILD)/runtime.flags: FLAGS = $(RUNTIME_CC)
$(BUILD)/%.flags: Makefile FORCE
	@mkdir -p $(@D)
	@printf '%s\n' -Wl,--as-needed $(SAN) $(FLAGS) | cmp -s - $@ || printf '%s\n' -Wl,--as-needed $(SAN) $(FLAGS) > $@
FORCE:
$(BUILD)/gnnc: $(BUILD)/frontend/main.o $(SOURCE_OBJ) $(BUILD)/libgnncc.a $(BUILD)/libgnnrt.a $(BUILD)/link.flags
	$(CC) $(SAN) -o $@ $(filter %.o %.a,$^) $(LLVM_LIBS) $(SOURCE_LIBS) $(RT_LIBS)

$(BUILD)/help.%: $(BUILD)/gnnc
	$(BUILD)/gnnc help $* > $@.part && mv $@.part $@

$(BUILD)/libgnncc.a: $(COMPILER_OBJ)
	rm -f $@ && ar rcs $@ $^
# The compiler for other programs: nothing is seen of it but gnncc_*.  Of the runtime it has what reads data.
$(COMPILER_OBJ): CFLAGS_ALL += -fPIC $(OPT_COMPILER)
VERSION := $(shell sed -n 's/^\#define GNNC_VERSION_TEXT "\(.*\)"$$/\1/p' frontend/cli/cli.h)
CC_SO := $(shell sed -n 's/^\#define GNNCC_ABI_VERSION \([0-9]*\)$$/\1/p' frontend/include/gnncc.h)
CC_PARTS = $(COMPILER_OBJ) $(BUILD)/libgnnrt.a
CC_LIBS = $(LLVM_LIBS) -pthread -lz -lm
$(BUILD)/libgnncc.so.$(CC_SO): $(CC_PARTS) frontend/gnncc.map
	$(CC) $(SAN) -shared -Wl,-soname,$(@F) -Wl,-Bsymbolic -Wl,--gc-sections $(if $(SAN),,-Wl,-z,defs) \
	    -Wl,--version-script=frontend/gnncc.map -o $@ $(CC_PARTS) $(CC_LIBS)
$(BUILD)/libgnncc.so: $(BUILD)/libgnncc.so.$(CC_SO)
	ln -sf $(<F) $@
$(BUILD)/static/libgnncc.a: $(CC_PARTS) $(BUILD)/libgnncc.so
	@mkdir -p $(@D)
	$(CC) -r -nostdlib -Wl,--gc-sections $$(nm -D --defined-only $(BUILD)/libgnncc.so | sed -n 's/.* T /-Wl,-u,/p') \
	    -o $(@:.a=.o) $(CC_PARTS)
	objcopy --wildcard --keep-global-symbol='gnncc_*' $(@:.a=.o)
	rm -f $@ && ar rcs $@ $(@:.a=.o)
$(BUILD)/libgnnrt.a: $(RUNTIME_OBJ)
	rm -f $@ && ar rcs $@ $^
# For --emit=infer: one object of what the interface reaches but for the trainer's, and nothing else is seen of
# it.  Its symbols are weak: a program that has libgnnrt.a as well takes one of each.
$(BUILD)/libgnnrt_infer.a: $(INFER_OBJ)
	readelf -sW $^ | awk '$$5 == "GLOBAL" && $$6 == "DEFAULT" && $$7 ~ /^[0-9]/ && $$8 !~ /^gnnc_trainer_/ { print $$8 }' > $(@:.a=.names)
	$(CC) -r -nostdlib -Wl,--gc-sections $$(sed 's/^/-Wl,-u,/' $(@:.a=.names)) -o $(@:.a=.o) $^
	objcopy --keep-global-symbols=$(@:.a=.names) --weaken-symbols=$(@:.a=.names) $(@:.a=.o)
	rm -f $@ && ar rcs $@ $(@:.a=.o)
# The same as libgnnrt.a for models that share it (gnnc --emit=lib --runtime=shared).
SO := $(shell sed -n 's/^enum { RT_SO_VERSION = \([0-9]*\) };/\1/p' runtime/program.h)
$(BUILD)/libgnnrt.so.$(SO): $(RUNTIME_OBJ) $(BUILD)/link.flags
	$(CC) $(SAN) -shared -Wl,-soname,$(@F) -Wl,-Bsymbolic -o $@ $(RUNTIME_OBJ) -Wl,--as-needed $(RT_LIBS)
$(BUILD)/libgnnrt.so: $(BUILD)/libgnnrt.so.$(SO)
	ln -sf $(<F) $@

# What programs that were compiled with gnnc.h and gnncc.h have of the libraries, as libabigail's abidw reads it
# (docs/c-api.md).
ABI ?= tests/abi
ABIDW = abidw --drop-private-types --exported-interfaces-only --no-corpus-path --no-comp-dir-path --no-show-locs \
    --no-architecture --no-elf-needed --no-parameter-names --type-id-style hash
abi: $(BUILD)/libgnnrt.so $(BUILD)/libgnncc.so
	$(ABIDW) --headers-dir runtime/include --suppressions tests/abi/gnnc.suppr --out-file $(call quoted,$(ABI))/gnnc.xml \
	    $(BUILD)/libgnnrt.so
	$(ABIDW) --headers-dir frontend/include --out-file $(call quoted,$(ABI))/gnncc.xml $(BUILD)/libgnncc.so

# The GEMM library the runtime calls: oneDNN where its header is found, else OpenBLAS.
HAVE_DNNL := $(wildcard /usr/include/oneapi/dnnl/dnnl.h)
GEMM_LIB ?= $(if $(HAVE_DNNL),-ldnnl,-lopenblas)
GEMM_DEF = $(if $(HAVE_DNNL),-DRT_GEMM_DNNL=1,-DRT_GEMM_BLAS=1)
# Cluster batches want METIS; without it asking for them is an error that says so.
HAVE_METIS := $(wildcard /usr/include/metis.h)
METIS_LIB = $(if $(HAVE_METIS),-lmetis)
$(BUILD)/runtime/gemm/gemm_serial.o $(BUILD)/runtime/partition/metis_cut.o: $(BUILD)/link.flags
$(BUILD)/runtime/gemm/gemm_serial.o: CFLAGS_ALL += $(GEMM_DEF)
$(BUILD)/runtime/partition/metis_cut.o: CFLAGS_ALL += -DRT_HAVE_METIS=$(if $(HAVE_METIS),1,0)

# Processes that train together, where MPI is: gnnc --mpi links it.
MPI_LINK = $(shell mpicc --showme:link 2>/dev/null || mpicc -link_info | cut -d' ' -f2-)
$(BUILD)/gnnrt_mpi.o: runtime/mpi/mpi.c
	@mkdir -p $(@D)
	$(MPICC) $(CFLAGS_ALL) -I. -Iruntime/include -c -o $@ $<
$(BUILD)/mpi.flags: FLAGS = $(MPI_LINK)

# Read or asked once a run: compiled for size, of which libraries that only predict have little.
SMALL = memory memory_limit options variant \
    $(addprefix batch/,batch_sizes batch_source) \
    $(addprefix bind/,bind bind_at bind_fingerprint bind_form bind_map bind_relation bind_table bind_there) \
    $(addprefix data/,dataset encoder encoder_cells encoder_scale io json npy safetensors schema) \
    $(addprefix graph/,dlpack graph graph_append graph_array graph_arrow graph_arrow_values graph_column \
        graph_dlpack graph_snapshot graph_values node_names) \
    $(addprefix model/,cells codes encoders legend legend_rows legend_write model model_lend model_pack \
        reached weights) \
    $(addprefix session/,session session_at session_device session_dlpack session_embed session_graphs \
        session_links session_pairs session_subgraph session_subgraph_links session_whole) \
    $(addprefix trainer/,init splits trainer)
$(SMALL:%=$(BUILD)/runtime/%.o): private CFLAGS_ALL += -Os

# What is asked once, by people, is compiled small: libraries that only predict have it, too.
$(BUILD)/runtime/model/describe.o: private CFLAGS_ALL += -Os
# No tables to unwind by: nothing is thrown through the runtime (docs/c-api.md), debuggers have theirs in the debug
# information, and all frames have pointers.
RUNTIME_CC = $(CC) $(CFLAGS_ALL) $(if $(SAN),,-fno-asynchronous-unwind-tables) -fPIC -fno-semantic-interposition -ffunction-sections -fdata-sections -I. -Iruntime/include
$(RUNTIME_OBJ) $(BUILD)/runtime/gemm/gemm_serial_plain.o $(BUILD)/runtime/infer/host_only.o: $(BUILD)/runtime.flags
$(BUILD)/runtime/%.o: runtime/%.c
	@mkdir -p $(@D)
	$(RUNTIME_CC) -c -o $@ $<
$(BUILD)/runtime/gemm/gemm_serial_plain.o: runtime/gemm/gemm_serial.c
	@mkdir -p $(@D)
	$(RUNTIME_CC) -c -o $@ $<
$(BUILD)/codegen/cpu/%.o: codegen/cpu/%.c | $(BUILD)/tools.ok
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(INC_COMPILER) $(LLVM_CFLAGS) -c -o $@ $<
$(BUILD)/gen/%.o: $(BUILD)/gen/%.c
	$(CC) $(CFLAGS_ALL) -Wno-sign-compare -Wno-unused-function -Wno-unused-but-set-variable $(INC_COMPILER) -Ifrontend/syntax -c -o $@ $<
$(BUILD)/%.o: %.c | $(GEN)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(INC_COMPILER) -c -o $@ $<

# What --emit=html writes, as arrays: page.html is cg_page_html, with a 0 behind it.
PAGE = $(addprefix codegen/report/page/page.,html css js)
$(BUILD)/gen/codegen/page.c: $(PAGE)
	@mkdir -p $(@D)
	@for f in $(PAGE); do n=$${f##*.}; echo "extern const unsigned char cg_page_$$n[];"; echo "const unsigned char cg_page_$$n[] = {"; \
	    od -An -v -tu1 $$f | sed 's/[0-9][0-9]*/&,/g'; echo "0};"; done > $@.part && mv $@.part $@
$(BUILD)/gen/frontend/syntax/lex.c: frontend/syntax/lex.l $(BUILD)/gen/frontend/syntax/grammar.c
	@mkdir -p $(@D)
	$(FLEX) -o $@ --header-file=$(BUILD)/gen/frontend/syntax/lex.h $<
$(BUILD)/gen/frontend/syntax/grammar.c: frontend/syntax/grammar.y | $(BUILD)/tools.ok
	@mkdir -p $(@D)
	$(BISON) -Wall -Werror -Wno-yacc --defines=$(BUILD)/gen/frontend/syntax/grammar.h -o $@ $<

# ---- tests -------------------------------------------------------------------
# Tests are linked by the fastest linker that is here: 75 of them take GNU ld a minute and a half, gold twenty seconds.
# TEST_LINES=-Wl,-S: without lines for debuggers in half of that.
TEST_LINES ?=
TEST_LINK := $(if $(shell command -v ld.gold),-fuse-ld=gold) $(TEST_LINES)
# What tests share, each a member of one archive: a test takes those that it calls.
SUPPORT_OBJ = $(patsubst tests/%.c,$(BUILD)/tests/%.o,$(wildcard tests/*.c))
$(SUPPORT_OBJ): CFLAGS_ALL += $(OPT_TESTS)
$(BUILD)/libtests.a: $(SUPPORT_OBJ)
	rm -f $@ && ar rcs $@ $^
LIBS_TEST = $(BUILD)/libtests.a $(BUILD)/libgnncc.a $(BUILD)/libgnnrt.a
$(BUILD)/tests/unit/%: $(BUILD)/tests/unit/%.o $(LIBS_TEST) | $(BUILD)/link.flags
	$(CC) $(SAN) $(TEST_LINK) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LLVM_LIBS) $(RT_LIBS)
$(BUILD)/tests/unit/cudasim_test: | $(BUILD)/libcudasim.a
# It refuses what its runtime asks of the C library.
$(BUILD)/tests/unit/main_memory_test: private RT_LIBS += $(foreach f,malloc calloc realloc free,-Wl,--wrap=$f)
# They have the file itself, to look inside.
$(BUILD)/tests/unit/sqlite_test: $(filter-out %/sqlite.o,$(SOURCE_OBJ))
$(BUILD)/tests/unit/postgres_test: $(filter-out %/postgres.o,$(SOURCE_OBJ))
$(BUILD)/tests/unit/sqlite_test $(BUILD)/tests/unit/postgres_test: private RT_LIBS += $(SOURCE_LIBS)
$(BUILD)/tests/unit/postgres_test.o: private INC_COMPILER += $(SOURCE_CC)

# The compiler's objects, but for LLVM's half, which tell of each basic block that they run; not of builds with sanitizers.
COUNTED = $(patsubst $(BUILD)/%,$(BUILD)/counted/%,$(filter-out $(BUILD)/codegen/cpu/%,$(COMPILER_OBJ)))
$(BUILD)/counted/%.o: %.c | $(GEN)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -O1 -g0 -fsanitize-coverage=trace-pc $(INC_COMPILER) -c -o $@ $<
$(BUILD)/counted/gen/%.o: $(BUILD)/gen/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -O1 -g0 -fsanitize-coverage=trace-pc -Wno-sign-compare -Wno-unused-function -Wno-unused-but-set-variable $(INC_COMPILER) -Ifrontend/syntax -c -o $@ $<
$(BUILD)/tests/unit/growth_test: $(if $(SAN),,$(COUNTED))
$(BUILD)/tests/unit/growth_test.o: private CFLAGS_ALL += $(if $(SAN),,-DCOUNTED)

# One folder for a machine with a GPU: tests, recorded results, benchmarks (docs/cuda.md).
$(BUILD)/tests/gpu/record_ops: $(BUILD)/tests/gpu/record_ops.o $(LIBS_TEST)
	$(CC) $(SAN) $(TEST_LINK) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LLVM_LIBS) $(RT_LIBS)
$(BUILD)/tests/gpu/%.o: tests/gpu/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(INC_COMPILER) -Itests -c -o $@ $<
gpu-bundle: all $(BUILD)/tests/gpu/record_ops
	@python3 tests/gpu/bundle $(BUILD) $(BUILD)/gpu-bundle $(if $(NVCC),--build $(call quoted,$(CUDA_DIR)))

# The runtime's CUDA half, where the toolkit is: gnnc links it for --target=cuda.  Programs open cuBLAS
# themselves, on a machine with a GPU (runtime/cuda/blas.c); the run path is where they look first.
CUDA_HOME ?=
ifeq ($(origin NVCC),undefined)
NVCC := $(shell PATH=$(if $(CUDA_HOME),$(call quoted,$(CUDA_HOME)/bin),"$$PATH:/usr/local/cuda/bin"); command -v nvcc)
endif
CUDA_DIR := $(shell nvcc=$(call quoted,$(NVCC)); echo "$${nvcc%/bin/nvcc}")
CUDART := $(shell test -e $(call quoted,$(CUDA_DIR)/lib64/libcudart_static.a) && echo -lcudart_static || echo -lcudart)
CUDA_OBJ = $(patsubst runtime/%.c,$(BUILD)/runtime/%.o,$(wildcard runtime/cuda/*.c))
$(BUILD)/runtime/cuda/%.o: runtime/cuda/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -fPIC -I. -Iruntime/include -isystem $(call quoted,$(CUDA_DIR)/include) -c -o $@ $<
$(BUILD)/libgnnrt_cuda.a: $(CUDA_OBJ)
	rm -f $@ && ar rcs $@ $^
cuda: $(if $(NVCC),$(BUILD)/libgnnrt_cuda.a $(BUILD)/cuda.flags)
$(BUILD)/cuda.flags: Makefile
	@mkdir -p $(@D)
	@printf '%s\n' $(call quoted,-L$(CUDA_DIR)/lib64) -Xlinker -rpath -Xlinker $(call quoted,$(CUDA_DIR)/lib64) \
	    $(CUDART) -lstdc++ -ldl -lrt > $@

# The simulated GPU, and the runtime's CUDA half compiled for it.
CUDASIM_OBJ = $(patsubst tests/cudasim/%.c,$(BUILD)/tests/cudasim/%.o,$(wildcard tests/cudasim/*.c)) \
    $(patsubst runtime/cuda/%.c,$(BUILD)/tests/cudasim/rt_%.o,$(wildcard runtime/cuda/*.c))
CUDASIM_CC = $(CC) $(CFLAGS_ALL) -fPIC -DRT_CUDA_PAIRS=64 -Itests/cudasim -Itests/cudasim/include -I. -Iruntime/include
$(BUILD)/tests/cudasim/rt_%.o: runtime/cuda/%.c
	@mkdir -p $(@D)
	$(CUDASIM_CC) -c -o $@ $<
$(BUILD)/tests/cudasim/%.o: tests/cudasim/%.c
	@mkdir -p $(@D)
	$(CUDASIM_CC) -c -o $@ $<
$(BUILD)/libcudasim.a: $(CUDASIM_OBJ)
	rm -f $@ && ar rcs $@ $^
$(BUILD)/tests/random/model_check: $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/random/*.c)) \
    $(LIBS_TEST) | $(BUILD)/link.flags
	$(CC) $(SAN) $(TEST_LINK) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LLVM_LIBS) $(RT_LIBS)
$(BUILD)/tests/unit/%.o: tests/unit/%.c | $(GEN)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(OPT_TESTS) $(INC_COMPILER) -Itests -c -o $@ $<
unit: $(UNIT) $(BUILD)/tests/random/model_check $(BUILD)/bench/sampler $(BUILD)/bench/products

# The driver of bench/sampler.py, and products: `unit` builds them, so that they keep up with the runtime.
$(BUILD)/bench/sampler $(BUILD)/bench/products: %: %.o $(BUILD)/libgnnrt.a
	$(CC) $(SAN) $(TEST_LINK) -o $@ $^ $(RT_LIBS)
$(BUILD)/bench/%.o: bench/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -I. -Iruntime/include -c -o $@ $<

# ---- the two commands of the README --------------------------------------------
demo:
	@sh tests/tools/install-deps.sh build
	@$(MAKE) --no-print-directory -s -j$$(nproc) all
	$(BUILD)/gnnc models/gcn.gnn --target=cpu -o $(BUILD)/gcn
	$(BUILD)/gcn --data models/data/cora
test:
	@sh tests/tools/install-deps.sh test
	@tests/all
check: all unit
	@tests/all quick
accuracy: all
	@python3 bench/accuracy.py --gnnc $(BUILD)/gnnc

# ---- installation ----------------------------------------------------------------
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
DATADIR ?= $(PREFIX)/share
MANDIR ?= $(DATADIR)/man
to = $(call quoted,$(DESTDIR)$(1))
BIN = $(call to,$(BINDIR))
LIB = $(call to,$(LIBDIR))
INCLUDE = $(call to,$(INCLUDEDIR))
DATA = $(call to,$(DATADIR))
HOME_DIR = $(LIB)/gnnc
# What gnnc says of itself (HELPS, in this order), where manuals and shells look for it.
MANUAL = $(call to,$(MANDIR))/man1/gnnc.1 $(DATA)/bash-completion/completions/gnnc \
    $(DATA)/zsh/site-functions/_gnnc $(DATA)/fish/vendor_completions.d/gnnc.fish
# From one folder to another, wherever both are moved: below LIBDIR the path is as long as LIBDIR says.
between = realpath -m --relative-to=$(1) $(2)
# As pkg-config reads them, from where they lie.
pc = printf '%s\n' "prefix=\$${pcfiledir}/$$($(call between,$(LIB)/pkgconfig,$(call to,$(PREFIX))))" 'libdir=$${pcfiledir}/..' \
    "includedir=\$${pcfiledir}/$$($(call between,$(LIB)/pkgconfig,$(INCLUDE)))" '' 'Name: $(1)' 'Description: $(2)' \
    'Version: $(VERSION)' 'Cflags: -I$${includedir}' 'Libs: -L$${libdir} -l$(1)' 'Libs.private: $(3)' > $(LIB)/pkgconfig/$(1).pc
install: all $(BUILD)/static/libgnncc.a
	install -d $(BIN) $(INCLUDE) $(HOME_DIR)/include $(LIB)/pkgconfig
	install -m 755 $(BUILD)/gnnc $(HOME_DIR)/gnnc
	ln -sf "$$($(call between,$(BIN),$(HOME_DIR)/gnnc))" $(BIN)/gnnc
	install -m 644 $(BUILD)/libgnnrt.a $(BUILD)/link.flags $(BUILD)/libgnnrt_infer.a $(BUILD)/infer.flags $(HOME_DIR)/
	$(if $(MPICC),install -m 644 $(BUILD)/gnnrt_mpi.o $(BUILD)/mpi.flags $(HOME_DIR)/)
	{ $(call between,$(HOME_DIR),$(INCLUDE)); $(call between,$(HOME_DIR),$(DATA)/gnnc); } > $(HOME_DIR)/paths
	install -m 755 $(BUILD)/libgnnrt.so.$(SO) $(BUILD)/libgnncc.so.$(CC_SO) $(LIB)/
	ln -sf libgnnrt.so.$(SO) $(LIB)/libgnnrt.so
	ln -sf gnnc/libgnnrt.a $(LIB)/libgnnrt.a
	ln -sf libgnncc.so.$(CC_SO) $(LIB)/libgnncc.so
	install -m 644 $(BUILD)/static/libgnncc.a $(LIB)/
	$(call pc,gnncc,the compiler gnnc as a library,$(LLVM_LIBS) $(RT_LIBS))
	$(call pc,gnnrt,the runtime of models that gnnc compiled,$(RT_LIBS))
	install -m 644 runtime/include/*.h runtime/program.h runtime/contract.def $(HOME_DIR)/include/
	install -d $(HOME_DIR)/include/cuda
	install -m 644 $(filter-out %/cuda.h %/nccl.h %_cost.h,$(wildcard runtime/cuda/*.h)) $(HOME_DIR)/include/cuda/
	$(if $(NVCC),install -m 644 $(BUILD)/libgnnrt_cuda.a $(BUILD)/cuda.flags $(HOME_DIR)/)
	install -m 644 runtime/include/*.h frontend/include/gnncc.h $(INCLUDE)/
	install -d $(DATA)/gnnc/models/layers
	install -m 644 models/*.gnn $(DATA)/gnnc/models/
	install -m 644 models/layers/*.gnn $(DATA)/gnnc/models/layers/
	install -d $(DATA)/gnnc/python
	install -m 644 runtime/python/*.py $(DATA)/gnnc/python/
	set -- $(HELPS); for to in $(MANUAL); do \
	    install -d "$${to%/*}" && install -m 644 $$1 "$$to" || exit 1; shift; done
# The compiler for Python: pip install build/gnnc-*.whl.
WHEEL = $(abspath $(BUILD))/wheel
wheel: all
	@rm -rf $(call quoted,$(WHEEL))
	@$(MAKE) --no-print-directory -s install DESTDIR= PREFIX=$(call quoted,$(WHEEL)) BINDIR=$(call quoted,$(WHEEL)/bin) \
	    LIBDIR=$(call quoted,$(WHEEL)/lib) INCLUDEDIR=$(call quoted,$(WHEEL)/include) DATADIR=$(call quoted,$(WHEEL)/share)
	@python3 frontend/python/wheel.py frontend/python/gnnc $(call quoted,$(WHEEL)) $(VERSION) $(call quoted,$(BUILD))
uninstall:
	rm -rf $(HOME_DIR) $(DATA)/gnnc
	rm -f $(MANUAL) $(BIN)/gnnc
	rm -f $(addprefix $(LIB)/,libgnnrt.so libgnnrt.so.$(SO) libgnnrt.a libgnncc.so libgnncc.so.$(CC_SO) libgnncc.a pkgconfig/gnncc.pc pkgconfig/gnnrt.pc)
	rm -f $(patsubst runtime/include/%,$(INCLUDE)/%,$(wildcard runtime/include/*.h)) $(INCLUDE)/gnncc.h

# What clang warns of, in all but what tests/tsan compiles with the same warnings: the runtime.
WARNING = xargs -P $${JOBS:-$$(nproc)} -n 8 clang-19 -fsyntax-only $(filter-out -MMD -MP,$(CFLAGS_ALL)) $(INC_COMPILER)
warnings: $(GEN)
	@printf '%s\n' $(COMPILER_SRC) frontend/main.c $(wildcard tests/*.c tests/unit/*.c tests/random/*.c) bench/sampler.c bench/products.c | \
	    $(WARNING) -Itests $(LLVM_CFLAGS)
	@printf '%s\n' $(wildcard runtime/cuda/*.c tests/cudasim/*.c) | $(WARNING) -Itests/cudasim -Itests/cudasim/include
	@printf '%s\n' $(GEN) | $(WARNING) -Wno-sign-compare -Wno-unused-function -Wno-unused-but-set-variable -Ifrontend/syntax

# What takes longer than CI; the last part goes on where it stopped (tests/random/README.md).
# PEERS: a Python that has PyG (bench/README.md); without it nothing is compared with PyG itself.
PEERS = peers/bin/python
# Cases of which CI runs a part.
LONG_CASES = every_level case_several_processes features_in_parts names_mean reports_hold by_themselves mini_batches sixteen_bits install_and_use models_as_libraries
long: all $(BUILD)/tests/random/model_check
	dir=$$(mktemp -d) && cd "$$dir" && python3 $(call quoted,$(CURDIR))/tests/e2e/service.py $(call quoted,$(abspath $(BUILD)))/gnnc \
	    $(call quoted,$(CURDIR)) $(call quoted,$(CURDIR))/models/data/cora 20000 1000; rc=$$?; rm -r "$$dir"; exit $$rc
	dir=$$(mktemp -d) && cd "$$dir" && python3 $(call quoted,$(CURDIR))/tests/e2e/databases.py $(call quoted,$(abspath $(BUILD)))/gnnc \
	    $(call quoted,$(CURDIR)) 10000000; rc=$$?; rm -r "$$dir"; exit $$rc
	$(if $(MPICC),dir=$$(mktemp -d) && cd "$$dir" && GNNC_KILLS=300 python3 $(call quoted,$(CURDIR))/tests/e2e/parts.py \
	    $(call quoted,$(abspath $(BUILD)))/gnnc $(call quoted,$(CURDIR)); rc=$$?; rm -r "$$dir"; exit $$rc)
	$(if $(MPICC),mkdir -p $(call quoted,$(BUILD))/kills && cd $(call quoted,$(BUILD))/kills && GNNC_KILLS=102 \
	    python3 $(call quoted,$(CURDIR))/tests/e2e/shipped_ranks.py $(call quoted,$(abspath $(BUILD)))/gnnc $(call quoted,$(CURDIR)))
	for t in $(LONG_CASES); do GNNC_LONG=1 tests/e2e/run $$t || exit 1; done
	GNNC_LONG=1 tests/cudasim/run && tests/cudasim/nvcc --all
	dir=$$(mktemp -d) && cd "$$dir" && python3 $(call quoted,$(CURDIR))/tests/e2e/many_edges.py \
	    $(call quoted,$(abspath $(BUILD)))/gnnc $(call quoted,$(CURDIR)); rc=$$?; rm -r "$$dir"; exit $$rc
	tests/fuzz/run 60
	if $(PEERS) -c 'import torch_geometric'; then python3 tests/oracle/weights.py $(BUILD)/gnnc . $(PEERS) && \
	    $(PEERS) tests/oracle/pyg_data.py $(BUILD)/gnnc . models/data/cora; \
	    else echo "no PyG: make long PEERS=PYTHON"; fi
	python3 tests/random/run.py --campaign --build $(BUILD)
format-check:
	@git ls-files '*.c' '*.h' | xargs clang-format-19 --dry-run --Werror
format:
	@git ls-files '*.c' '*.h' | xargs clang-format-19 -i

clean:
	rm -rf $(BUILD)

.PHONY: all FORCE abi cuda gpu-bundle unit install wheel uninstall demo test check long accuracy warnings format format-check clean
.SECONDARY:
# Not those of other builds, which may be under way.
-include $(shell find $(BUILD) -path '$(BUILD)/*san' -prune -o -path $(BUILD)/fuzz -prune -o -name '*.d' -type f -print 2>/dev/null)
print-%:
	@echo '$($*)'
