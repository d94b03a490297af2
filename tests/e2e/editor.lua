-- What editor.py has Neovim do: each step as a person's keys would, its result into a file.
local out, cmd = os.getenv("EDITOR_OUT"), os.getenv("EDITOR_GNNC")
local root = os.getenv("EDITOR_TOP") .. "/docs/editors"
local result = {}

local function finish()
  local f = io.open(out, "w")
  f:write(vim.json.encode(result))
  f:close()
  vim.cmd("qall!")
end

local function wait(what, test)
  result["waited for " .. what] = vim.wait(10000, test, 20)
end

local function lines() return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n") .. "\n" end

local function go(text, plus)
  vim.fn.cursor(1, 1)
  vim.fn.search("\\V" .. text, "cW")
  vim.fn.cursor(vim.fn.line("."), vim.fn.col(".") + (plus or 0))
end

local function messages()
  local all = {}
  for _, d in ipairs(vim.diagnostic.get(0)) do
    table.insert(all, { line = d.lnum, col = d.col, message = d.message })
  end
  return all
end

local function highlight(text, plus)
  go(text, plus)
  return vim.fn.synIDattr(vim.fn.synID(vim.fn.line("."), vim.fn.col("."), 1), "name")
end

local function run()
  vim.opt.runtimepath:append(root .. "/vim")
  dofile(root .. "/nvim/gnn.lua")({ cmd = { cmd, "lsp" } })
  vim.cmd("filetype plugin on | syntax on")
  vim.cmd("edit model.gnn")
  result.filetype = vim.bo.filetype
  result.words = { model = highlight("model GCN"), recipe = highlight("epochs 10"), type = highlight("f32"),
    comment = highlight("# A model"), string = highlight('"layers', 2), outside = highlight("epochs = 3"),
    call = highlight("relu(") }

  wait("a diagnostic", function() return #vim.diagnostic.get(0) > 0 end)
  result.diagnostics = messages()
  go("conw")
  vim.cmd("normal! cwconv")
  wait("no diagnostic", function() return #vim.diagnostic.get(0) == 0 end)
  result.mended = messages()

  go("h = relu")
  vim.lsp.buf.hover()
  local float
  wait("hover", function()
    for _, w in ipairs(vim.api.nvim_list_wins()) do
      if vim.api.nvim_win_get_config(w).relative ~= "" then float = w end
    end
    return float ~= nil
  end)
  if float then
    result.hover = table.concat(vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(float), 0, -1, false), "\n")
    vim.api.nvim_win_close(float, true)
  end

  go("relu(", 1)
  local before = vim.api.nvim_buf_get_name(0)
  vim.lsp.buf.definition()
  wait("definition", function() return vim.api.nvim_buf_get_name(0) ~= before end)
  result.definition = { vim.api.nvim_buf_get_name(0), vim.api.nvim_get_current_line() }
  vim.cmd("buffer model.gnn")

  go("g.paper.x", 8)
  local params = vim.lsp.util.make_position_params()
  local answers = vim.lsp.buf_request_sync(0, "textDocument/completion", params, 10000) or {}
  result.completion = {}
  for _, a in pairs(answers) do
    for _, item in ipairs(vim.lsp.util.text_document_completion_list_to_complete_items(a.result, "")) do
      table.insert(result.completion, item.word)
    end
  end

  go("hidden: int")
  vim.lsp.buf.rename("wide")
  wait("rename", function() return lines():find("gcn_conv(wide)", 1, true) ~= nil end)
  result.renamed = lines()

  go("conv = gcn")
  vim.cmd("normal! I     ")
  if vim.lsp.buf.format then vim.lsp.buf.format({ timeout_ms = 10000 }) else vim.lsp.buf.formatting_sync({}, 10000) end
  result.formatted = lines()

  vim.lsp.stop_client(vim.lsp.get_active_clients())
  wait("the server's end", function() return #vim.lsp.get_active_clients() == 0 end)
end

local ok, why = pcall(run)
if not ok then result.error = why end
finish()
