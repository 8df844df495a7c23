import { z } from "zod";
import { CaissonError } from "../../../contract/error/error.ts";
import { jsonOrNull } from "../../../lib/failures.ts";
import { hexDigest } from "../digest-list.ts";
import { mayLead } from "../package-upstream.ts";
import {
  at,
  ownAddresses,
  publicAddress,
  type Registry,
  type RegistryAddress,
  type RegistryOptions,
  type Routed,
  unknown,
} from "../registry.ts";
import type { Digest, Resource, Rewritten } from "../resource.ts";

const NAME = /^[A-Za-z][\w-]{0,63}$/;
const VERSION = /^\d[\w.+-]{0,127}$/;
const CONFIG_BYTES_MAX = 64 * 1024;
const Config = z.object({ dl: z.string().max(2048) });
const IndexLine = z.object({ vers: z.string(), cksum: z.string() });

/** The hosts of the public registry: one for the index, one for the crates. */
export const cratesHosts = { index: "index.crates.io", files: "static.crates.io" } as const;

/**
 * A sparse index. The mirror serves its own `config.json`, so clients request crates as `dl/NAME/VERSION`, except at
 * the public address.
 */
export function cratesRegistry({ upstream, packages }: RegistryOptions): Registry {
  const indexPage = (name: string): Resource => ({
    url: at(upstream, indexPath(name)),
    accept: "*/*",
    contentType: "text/plain",
    keeps: "shortly",
    rewrite: ({ body }) => withDigests(body, name),
  });

  async function crate(name: string, version: string): Promise<Routed> {
    const lower = name.toLowerCase();
    const file = { pages: [indexPage(lower)], path: `${lower}/${version}` } as const;
    const digest = async () => (await packages.firstListed([file]))?.digest ?? null;
    const url = await downloadUrl(name, version, digest);
    return { kind: "resource", resource: { url, accept: "*/*", contentType: "application/octet-stream", keeps: "always", digest } };
  }

  /** Returns the URL that the registry's own settings specify. */
  async function downloadUrl(name: string, version: string, digest: () => Promise<Digest | null>): Promise<URL> {
    const config = await packages.obtain({ url: at(upstream, ["config.json"]), accept: "application/json", keeps: "shortly" });
    if (config.kind === "missing") throw new CaissonError("unavailable", `${upstream.host} has no config.json`);
    const text = await wholeText(config);
    const parsed = Config.safeParse(jsonOrNull(text));
    const template = parsed.success ? parsed.data.dl : "";
    const marked = /\{(crate|version|prefix|lowerprefix|sha256-checksum)\}/.test(template)
      ? template
      : `${template}/{crate}/{version}/download`;
    const sha256 = marked.includes("{sha256-checksum}") ? ((await digest()) ?? "").replace(/^sha256:/, "") : "";
    const filled = marked
      .replaceAll("{crate}", encodeURIComponent(name))
      .replaceAll("{version}", encodeURIComponent(version))
      .replaceAll("{prefix}", prefixOf(name).join("/"))
      .replaceAll("{lowerprefix}", prefixOf(name.toLowerCase()).join("/"))
      .replaceAll("{sha256-checksum}", sha256);
    const url = URL.canParse(filled) ? new URL(filled) : null;
    if (url === null || !mayLead(upstream, url))
      throw new CaissonError("protocol", `the config.json of ${upstream.host} does not specify a valid download URL`);
    return url;
  }

  const index: RegistryAddress["route"] = ({ method, segments, base }) => {
    const [first, name = "", version = ""] = segments;
    if (method !== "GET") return unknown;
    if (segments.length === 1 && first === "config.json") {
      const dl = base.hostname === cratesHosts.index ? `https://${cratesHosts.files}/crates` : `${base.href}dl/{crate}/{version}`;
      return { kind: "answer", status: 200, contentType: "application/json", body: `${JSON.stringify({ dl, api: null })}\n` };
    }
    if (first === "dl" && segments.length === 3 && NAME.test(name) && VERSION.test(version)) return crate(name, version);
    const listed = segments.at(-1) ?? "";
    if (!NAME.test(listed) || listed !== listed.toLowerCase() || indexPath(listed).join("/") !== segments.join("/")) return unknown;
    return { kind: "resource", resource: indexPage(listed) };
  };
  /** Accepts `crates/NAME/VERSION/download` and the public registry's other form, `crates/NAME/NAME-VERSION.crate`. */
  const files: RegistryAddress["route"] = ({ method, segments: [first, name = "", third = "", ...rest] }) => {
    const file = third.startsWith(`${name}-`) && third.endsWith(".crate") ? third.slice(name.length + 1, -".crate".length) : "";
    const version = rest.join("/") === "download" ? third : rest.length === 0 ? file : "";
    return method === "GET" && first === "crates" && NAME.test(name) && VERSION.test(version) ? crate(name, version) : unknown;
  };

  return {
    name: "crates",
    upstream,
    addresses: [publicAddress(cratesHosts.index, index), publicAddress(cratesHosts.files, files), ...ownAddresses(upstream, index)],
  };
}

function indexPath(lower: string): string[] {
  return [...prefixOf(lower), lower];
}

function prefixOf(name: string): string[] {
  if (name.length <= 2) return [String(name.length)];
  return name.length === 3 ? ["3", name.slice(0, 1)] : [name.slice(0, 2), name.slice(2, 4)];
}

/** Reads one version per line. The page stays unchanged. */
function withDigests(body: Buffer, name: string): Rewritten {
  const digests: [string, Digest][] = [];
  for (const line of body.toString().split("\n")) {
    if (line === "") continue;
    const { vers, cksum } = IndexLine.parse(JSON.parse(line));
    const digest = hexDigest("sha256", cksum);
    if (digest !== null) digests.push([`${name}/${vers}`, digest]);
  }
  return { body, digests };
}

async function wholeText(found: { read(): AsyncIterable<Buffer>; close(): Promise<void> }): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const part of found.read()) {
      bytes += part.length;
      if (bytes > CONFIG_BYTES_MAX) throw new CaissonError("too_large", "the config.json of the registry is too long");
      parts.push(part);
    }
  } finally {
    await found.close();
  }
  return Buffer.concat(parts).toString();
}
