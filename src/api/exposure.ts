import { readFile } from "node:fs/promises";
import { BlockList, isIP } from "node:net";
import { CaissonError } from "../contract/error.ts";
import { isLoopback, type StationNames } from "./gate.ts";
import { type PreviewNames, previewNames } from "./previews/preview-names.ts";

const FORWARDED_MAX = 32;

/** Who may reach the port, and what lies between: what `caisson up` was told. */
export interface ExposureOptions {
  listenHost: string;
  /** Files of a certificate (with its chain) and its key, in PEM. */
  tls?: { certPath: string; keyPath: string };
  /** What the station is called from elsewhere, such as `https://caisson.example.com`. */
  publicUrl?: string;
  /** Addresses or ranges of proxies that encrypt in front of it: besides this machine, only they may connect. */
  proxies?: readonly string[];
  /** What its previews are called from elsewhere, such as `https://*.previews.example.com`. */
  previewsAt?: string;
}

export interface Exposure extends StationNames {
  /** The address to listen on. */
  readonly host: string;
  /** Null without TLS of our own. Reads the files anew: they are renewed every few weeks. */
  readonly certificate: (() => Promise<{ cert: string; key: string }>) | null;
  /** Null where previews are reached on this machine alone. */
  readonly previews: PreviewNames | null;
  mayConnect(address: string): boolean;
  /** Whether it is a proxy of ours, which speaks for many callers. */
  isProxy(address: string): boolean;
  /** The address that a request came from, before the proxies. What others say of it is not believed. */
  callerOf(address: string, forwardedFor: string | null): string;
}

/**
 * Throws `invalid` for an address that others could reach while nothing encrypts the tokens on their way, and for files
 * that are no certificate.
 */
export async function judgeExposure(options: ExposureOptions): Promise<Exposure> {
  const { tls, publicUrl } = options;
  const host = options.listenHost === "localhost" ? "127.0.0.1" : options.listenHost;
  if (isIP(host) === 0) {
    throw new CaissonError("invalid", `--listen-host ${JSON.stringify(host)} is not an address`, {
      hint: "Such as 127.0.0.1, or 0.0.0.0 for every one of this machine's.",
    });
  }
  const proxies = blockListOf(options.proxies ?? []);
  const isPublic = !isLoopback(host);
  if (isPublic && tls === undefined && proxies === null) throw notEncrypted(host);
  if ((isPublic || proxies !== null) && publicUrl === undefined) {
    throw new CaissonError("invalid", "a station that others reach has to know what they call it", {
      hint: "Name it: --public-url https://caisson.example.com",
    });
  }
  const url = publicUrl === undefined ? null : checkedUrl(publicUrl);
  const certificate = tls === undefined ? null : () => readCertificate(tls);
  await certificate?.();
  const isProxy = (address: string) => proxies?.check(plainAddress(address), family(address)) === true;
  return {
    host,
    publicUrl: url,
    scheme: tls === undefined ? "http" : "https",
    certificate,
    previews: options.previewsAt === undefined ? null : previewNames(options.previewsAt, { publicUrl: url }),
    isProxy,
    mayConnect: (address) => proxies === null || tls !== undefined || isLoopback(plainAddress(address)) || isProxy(address),
    callerOf(address, forwardedFor) {
      const plain = plainAddress(address);
      if (forwardedFor === null || !isProxy(address)) return plain;
      // The last one was added by our proxy; those before it only where that one is a proxy of ours, too.
      const hops = forwardedFor.slice(-4096).split(",").slice(-FORWARDED_MAX).reverse();
      let caller = plain;
      for (const hop of hops.map((each) => plainAddress(each.trim()))) {
        if (isIP(hop) === 0) break;
        caller = hop;
        if (!isProxy(hop)) break;
      }
      return caller;
    },
  };
}

function notEncrypted(host: string): CaissonError {
  return new CaissonError("invalid", `the station does not listen on ${host} without TLS: others would read the tokens on their way`, {
    hint:
      "Give it a certificate (--tls-cert FILE --tls-key FILE), name the proxy that encrypts (--proxy ADDRESS), " +
      "or listen on 127.0.0.1 and come through an SSH tunnel.",
  });
}

function checkedUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url?.protocol === "https:" && url.pathname === "/" && url.search === "" && url.hash === "" && url.username === "") return url.origin;
  throw new CaissonError("invalid", `--public-url ${JSON.stringify(text)} is not the address of a station`, {
    hint: "It looks like https://caisson.example.com, without a path.",
  });
}

function blockListOf(proxies: readonly string[]): BlockList | null {
  if (proxies.length === 0) return null;
  const list = new BlockList();
  for (const proxy of proxies) {
    const [address = "", bits, ...rest] = proxy.split("/");
    const widest = isIP(address) === 4 ? 32 : 128;
    const isRange = bits !== undefined && /^[0-9]{1,3}$/.test(bits) && Number(bits) >= 1 && Number(bits) <= widest;
    if (isIP(address) === 0 || rest.length > 0 || (bits !== undefined && !isRange)) {
      throw new CaissonError("invalid", `--proxy ${JSON.stringify(proxy)} is neither an address nor a range`, {
        hint: "Such as 10.0.0.7 or 10.0.0.0/24.",
      });
    }
    if (bits === undefined) list.addAddress(address, family(address));
    else list.addSubnet(address, Number(bits), family(address));
  }
  return list;
}

/** IPv4 as IPv4, however the socket names it. */
function plainAddress(address: string): string {
  return address.replace(/^::ffff:(?=[0-9.]+$)/i, "");
}

function family(address: string): "ipv4" | "ipv6" {
  return isIP(plainAddress(address)) === 6 ? "ipv6" : "ipv4";
}

async function readCertificate({ certPath, keyPath }: { certPath: string; keyPath: string }): Promise<{ cert: string; key: string }> {
  try {
    const [cert, key] = await Promise.all([readFile(certPath, "utf8"), readFile(keyPath, "utf8")]);
    const { createSecureContext } = await import("node:tls");
    createSecureContext({ cert, key });
    return { cert, key };
  } catch (cause) {
    throw new CaissonError("invalid", `the certificate ${certPath} with the key ${keyPath} cannot be used: ${(cause as Error).message}`, {
      cause,
      hint: "Both are PEM files: the certificate with its chain, and the key that belongs to it.",
    });
  }
}
