-- gnnc's language server for Neovim 0.7 and later: require it, or dofile() it, from init.lua.
--   dofile("/path/to/gnnc/docs/editors/nvim/gnn.lua")
--   dofile("..")({ cmd = { "gnnc", "lsp", "-I", "/my/models" } })
local config = { name = "gnnc", cmd = { "gnnc", "lsp" } }

local function attach(buffer)
  if vim.lsp.start then
    vim.lsp.start(config)
    return
  end
  config.id = config.id or vim.lsp.start_client(config) -- 0.7
  if config.id then vim.lsp.buf_attach_client(buffer, config.id) end
end

local group = vim.api.nvim_create_augroup("gnnc", {})
vim.api.nvim_create_autocmd("FileType", {
  group = group,
  pattern = "gnn",
  callback = function(event)
    vim.bo[event.buf].omnifunc = "v:lua.vim.lsp.omnifunc"
    attach(event.buf)
  end,
})

return function(options)
  config = vim.tbl_extend("force", config, options or {})
end
