autocmd BufRead,BufNewFile *.gnn setfiletype gnn
