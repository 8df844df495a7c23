import { z } from "zod";
import { CaissonError } from "../../contract/error.ts";
import { HostPattern } from "../../contract/network.ts";
import type { FetchResult } from "../../sandbox/sandbox-network.ts";
import type { Tool } from "../tool.ts";
import { htmlText } from "./html-text.ts";
import { BASH_CHARACTERS_MAX, cutMiddle, FETCH_BYTES_MAX } from "./limits.ts";

const FetchArguments = z.strictObject({
  url: z
    .url({ protocol: /^https?$/ })
    .max(8192)
    .describe("With http:// or https://."),
  raw: z.boolean().optional().describe("The page as it is, instead of its words."),
});

/** A page from the web, under the same rules as everything else that leaves the sandbox. */
export const webFetchTool: Tool<z.infer<typeof FetchArguments>> = {
  name: "web_fetch",
  description: `Reads a page or file from the web, as far as the sandbox's network rules allow it, and gives its text (HTML as its words and links): at most ${BASH_CHARACTERS_MAX} characters of at most ${FETCH_BYTES_MAX} bytes. When the host is not allowed you are told why and how to ask.`,
  parameters: FetchArguments,
  parallel: true,
  repeatable: true,
  subject: ({ url }) => `web_fetch:${url}`,
  async run({ url, raw }, context) {
    const result = await context.network.fetch({ url, bytesMax: FETCH_BYTES_MAX, signal: context.signal });
    // Told here; it need not be told a second time behind the result.
    context.network.takeDenials();
    if ("denied" in result) return { outcome: "error", text: result.denied.text, details: { denied: result.denied.reason } };
    const { status, body, truncated } = result;
    const type = result.headers["content-type"] ?? "";
    const text = textOf(result, { raw: raw ?? false });
    const cut = cutMiddle(text, { charactersMax: BASH_CHARACTERS_MAX });
    const notes = [
      `${status} ${result.url} (${type === "" ? "unknown type" : type}, ${body.length} bytes${truncated ? ", the rest left out" : ""})`,
    ];
    return { outcome: status < 400 ? "ok" : "error", text: `${notes.join("\n")}\n\n${cut.text}`, details: { status, bytes: body.length } };
  },
};

function textOf(result: Extract<FetchResult, { status: number }>, options: { raw: boolean }): string {
  const type = (result.headers["content-type"] ?? "").toLowerCase();
  const isText = /^(text\/|application\/([\w.+-]*(json|xml|javascript|yaml|toml)|x-sh|sql))/.test(type);
  // A server that does not say what it is may still send words.
  if (!isText && (type !== "" || result.body.includes(0)))
    return "[This is not text. Fetch it inside the sandbox with curl to work with it.]";
  const charset = /charset="?([\w-]+)/.exec(type)?.[1] ?? "utf-8";
  let text: string;
  try {
    text = new TextDecoder(charset).decode(result.body);
  } catch {
    text = result.body.toString("utf8");
  }
  return type.includes("html") && !options.raw ? htmlText(text) : text;
}

const AskArguments = z.strictObject({
  host: HostPattern.refine((host) => host !== "*", "is too much; name the host").describe("Such as api.github.com, or *.example.org."),
  ports: z.array(z.int().min(1).max(65_535)).min(1).max(8).optional().describe("Default 80 and 443."),
  reason: z.string().min(1).max(500).describe("For the person who decides: what it is needed for."),
});

/** A person decides; from then on the whole sandbox may reach it, to the end of the run. */
export const requestNetworkTool: Tool<z.infer<typeof AskArguments>> = {
  name: "request_network",
  description:
    "Asks a person to let this sandbox reach a host that was denied. Wait for the answer; when it is yes, try again what was denied.",
  parameters: AskArguments,
  parallel: false,
  repeatable: true,
  // Yes to one host is not yes to the next.
  asksEachTime: true,
  subject: ({ host, ports, reason }) => `request_network:${host}${ports === undefined ? "" : `:${ports.join("+")}`} (${reason})`,
  async run({ host, ports }, context) {
    const target = host.includes(":") ? `[${host}]` : host;
    try {
      const now = await context.network.allow(ports === undefined ? target : `${target}:${ports.join("+")}`, {
        by: "agent, with a person's yes",
      });
      return { outcome: "ok", text: `It is allowed. The sandbox may reach: ${now}` };
    } catch (error) {
      if (!(error instanceof CaissonError) || error.code === "lost") throw error;
      return { outcome: "error", text: error.sentences };
    }
  },
};
