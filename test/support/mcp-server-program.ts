import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

/** An MCP server built with the official SDK, for tests. Its first argument selects how it misbehaves. */
const [, , manner = "well"] = process.argv;

if (manner === "garbage") process.stdout.write('this is not JSON\n{"jsonrpc":"2.0"}\n\n');
if (manner === "refuse") {
  process.stderr.write("no such folder: /nowhere\n");
  process.exit(1);
}
if (manner === "mute") setInterval(() => {}, 60_000);
else {
  const server = new McpServer({ name: "test", version: "1" });
  const reply = (text: string) => ({ content: [{ type: "text" as const, text }] });
  server.registerTool("add", { description: "Adds two numbers.", inputSchema: { a: z.number(), b: z.number() } }, ({ a, b }) =>
    reply(`${a + b}`),
  );
  server.registerTool("odd.name/x", { description: "d".repeat(10_000), inputSchema: {} }, () => reply("odd"));
  server.registerTool("odd_name_x", { inputSchema: {} }, () => reply("even"));
  server.registerTool("fail", { inputSchema: {} }, () => ({ ...reply("it went wrong"), isError: true }));
  server.registerTool("long", { inputSchema: {} }, () => reply("long ".repeat(20_000)));
  server.registerTool("picture", { inputSchema: {} }, () => ({
    content: [{ type: "image" as const, data: "AAAA", mimeType: "image/png" }],
  }));
  server.registerTool("document", { inputSchema: {} }, () => ({
    content: [
      { type: "resource" as const, resource: { uri: "demo://one", mimeType: "text/plain", text: "its words" } },
      { type: "resource_link" as const, uri: "demo://two", name: "two" },
    ],
  }));
  server.registerTool("die", { inputSchema: {} }, () => process.exit(1));
  server.registerTool("flood", { inputSchema: {} }, async () => {
    const block = "x".repeat(1024 * 1024);
    for (let megabytes = 0; megabytes < 20; megabytes++)
      if (!process.stdout.write(block)) await new Promise((resolve) => process.stdout.once("drain", resolve));
    return reply("never heard");
  });
  server.registerTool("wait", { inputSchema: {} }, () => new Promise(() => {}));
  await server.connect(new StdioServerTransport());
}
