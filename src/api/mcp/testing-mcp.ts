import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";

/** The parts of a tool's answer that the tests check. */
export interface Answered {
  isError?: boolean;
  content: { type: string; text?: string; data?: string }[];
  structuredContent?: Record<string, unknown>;
}

/** Connects the SDK's own client to a station over HTTP. */
export async function mcpOverHttp(url: string, token: string): Promise<{ client: Client; transport: StreamableHTTPClientTransport }> {
  const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`), {
    requestInit: { headers: { authorization: `Bearer ${token}` } },
  });
  const client = new Client({ name: "test", version: "1" });
  // The SDK's types are incompatible with exact optional properties.
  await client.connect(transport as Transport);
  return { client, transport };
}

export const callTool = async (client: Client, name: string, args: Record<string, unknown> = {}): Promise<Answered> =>
  (await client.callTool({ name, arguments: args })) as Answered;

export const textOf = ({ content }: Answered): string => content.map(({ text }) => text ?? "").join("\n");
