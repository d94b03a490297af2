// Starts the language server for model files.
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = () => {
  const [command, ...args] = workspace.getConfiguration("gnnc").get("command");
  client = new LanguageClient("gnnc", "gnnc", { command, args }, { documentSelector: [{ language: "gnn" }] });
  return client.start();
};

exports.deactivate = () => client && client.stop();
