" gnnc's model files: two blanks, # comments.
if exists("b:did_ftplugin")
  finish
endif
let b:did_ftplugin = 1
setlocal expandtab shiftwidth=2 softtabstop=2 comments=:#,:// commentstring=#\ %s
setlocal iskeyword+=' suffixesadd=.gnn include=^\\s*import
let b:undo_ftplugin = "setlocal expandtab< shiftwidth< softtabstop< comments< commentstring< iskeyword< suffixesadd< include<"
