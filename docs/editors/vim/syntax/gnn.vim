" gnnc's model files.  The words are those of `gnnc help words`: a test compares them.
if exists("b:current_syntax")
  finish
endif

syntax keyword gnnKeyword import const graph node edge model train layer fn extern param state
syntax keyword gnnKeyword for in if else while return as csr where and or not
syntax keyword gnnType f32 f64 f16 bf16 i32 i64 bool
syntax keyword gnnConstant true false none
syntax keyword gnnRecipe contained target loss metric optimizer group schedule clip epochs keep stop sample accumulate ema
syntax match gnnCall /\<\h\w*'*\ze(/
syntax match gnnMember /\.\s*\h\w*'*/
syntax match gnnNumber /\<\d\+\%(\.\d\+\)\?\%([eE][-+]\?\d\+\)\?\>/
syntax match gnnEscape /\\[\\"nt]/ contained
syntax region gnnString start=/"/ skip=/\\./ end=/"/ oneline contains=gnnEscape
syntax match gnnComment /\%(#\|\/\/\).*$/ contains=@Spell
syntax match gnnDeclared /\%(\<\%(const\|graph\|layer\|fn\|model\|train\)\s\+\)\@20<=\h\w*'*/
" The words of a recipe are names elsewhere.
syntax region gnnRecipeBody matchgroup=gnnBrace start=/\%(\<train\s\+\h\w*'*\s*\)\@60<={/ end=/}/ contains=gnnRecipe,gnnBlock,gnnType,gnnConstant,gnnCall,gnnMember,gnnNumber,gnnString,gnnComment,gnnKeyword
syntax region gnnBlock matchgroup=gnnBrace start=/{/ end=/}/ contained contains=gnnBlock,gnnKeyword,gnnType,gnnConstant,gnnCall,gnnMember,gnnNumber,gnnString,gnnComment

highlight default link gnnKeyword Keyword
highlight default link gnnType Type
highlight default link gnnConstant Constant
highlight default link gnnRecipe Statement
highlight default link gnnCall Function
highlight default link gnnDeclared Identifier
highlight default link gnnNumber Number
highlight default link gnnString String
highlight default link gnnEscape SpecialChar
highlight default link gnnComment Comment

syntax sync fromstart

let b:current_syntax = "gnn"
