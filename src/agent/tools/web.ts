import { z } from "zod";
import { CaissonError } from "../../contract/error/error.ts";
import { HostPattern } from "../../contract/network/network.ts";
import { ignoring } from "../../lib/failures.ts";
import type { FetchResult } from "../../sandbox/sandbox-network.ts";
import type { Tool } from "../tool.ts";
import { htmlText } from "./html-text.ts";
import { BASH_CHARACTERS_MAX, cutMiddle, FETCH_BYTES_MAX } from "./limits.ts";

const FetchArguments = z.strictObject({
  url: z
    .url({ protocol: /^https?$/ })
    .max(8192)
    .describe("An http:// or https:// URL."),
  raw: z.boolean().optional().describe("Return the page source instead of its text."),
});

/** Fetches a page from the web under the same rules as all other traffic from the sandbox. */
export const webFetchTool: Tool<z.infer<typeof FetchArguments>> = {
  name: "web_fetch",
  description: `Fetches a page or file from the web, if the sandbox's network rules allow it, and returns its text (for HTML its words and links): at most ${BASH_CHARACTERS_MAX} characters of at most ${FETCH_BYTES_MAX} bytes. If the host is not allowed, the result says why and how to request access.`,
  parameters: FetchArguments,
  parallel: true,
  repeatable: true,
  files: "untouched",
  subject: ({ url }) => `web_fetch:${url}`,
  async run({ url, raw }, context) {
    const result = await context.network.fetch({ url, bytesMax: FETCH_BYTES_MAX, signal: context.signal });
    // This result names the denial, so the loop need not append it.
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
  // A response without a content type may still be text.
  if (!isText && (type !== "" || result.body.includes(0)))
    return "[This is not text. Fetch it inside the sandbox with curl to work with it.]";
  const charset = /charset="?([\w-]+)/.exec(type)?.[1] ?? "utf-8";
  const decoder = ignoring("a charset that Node does not know is read as UTF-8", () => new TextDecoder(charset));
  const text = decoder?.decode(result.body) ?? result.body.toString("utf8");
  return type.includes("html") && !options.raw ? htmlText(text) : text;
}

const AskArguments = z.strictObject({
  host: HostPattern.refine((host) => host !== "*", "is too broad; name the host").describe("Such as api.github.com, or *.example.org."),
  ports: z.array(z.int().min(1).max(65_535)).min(1).max(8).optional().describe("Default 80 and 443."),
  reason: z.string().min(1).max(500).describe("Why you need this host, for the person who decides."),
});

/** Asks a person. After a yes, the whole sandbox may reach the host until the run ends. */
export const requestNetworkTool: Tool<z.infer<typeof AskArguments>> = {
  name: "request_network",
  description:
    "Asks a person to let this sandbox reach a host that was denied. Wait for the answer; if it is yes, retry the denied request.",
  parameters: AskArguments,
  parallel: false,
  repeatable: true,
  files: "untouched",
  // Approval for one host does not cover the next.
  asksEachTime: true,
  subject: ({ host, ports, reason }) => `request_network:${host}${ports === undefined ? "" : `:${ports.join("+")}`} (${reason})`,
  async run({ host, ports }, context) {
    const target = host.includes(":") ? `[${host}]` : host;
    try {
      const now = await context.network.allow(ports === undefined ? target : `${target}:${ports.join("+")}`, {
        by: "agent, approved by a person",
      });
      return { outcome: "ok", text: `It is allowed. The sandbox may reach: ${now}` };
    } catch (error) {
      if (!(error instanceof CaissonError) || error.code === "lost") throw error;
      return { outcome: "error", text: error.sentences };
    }
  },
};
