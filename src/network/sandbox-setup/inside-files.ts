import { readFileSync } from "node:fs";
import { join } from "node:path";
import { JAVA_KEY_STORE_PASSWORD, javaKeyStore } from "../authority/java-key-store.ts";
import { insideNames, insidePath } from "./inside-paths.ts";
import { PROXY_PORT } from "./ports.ts";

const READABLE = 0o644;

export interface InsideFile {
  name: string;
  data: Buffer;
  mode: number;
}

/**
 * Returns the files of /run/caisson, by name. They make programs inside trust the sandbox's own authority in addition
 * to the system's, and find the proxy.
 */
export function insideFiles(options: { certificatePem: string; systemBundlePem: string }): InsideFile[] {
  const { certificatePem, systemBundlePem } = options;
  const file = (name: keyof typeof insideNames, data: string | Buffer): InsideFile => ({
    name: insideNames[name],
    data: Buffer.from(data),
    mode: READABLE,
  });
  return [
    file("ca", certificatePem),
    file("caBundle", `${systemBundlePem.trimEnd()}\n${certificatePem}`),
    file("trustStore", javaKeyStore([systemBundlePem, certificatePem])),
    file("javaOptions", javaOptions()),
    file("nodeProxy", nodeProxy()),
  ];
}

function javaOptions(): string {
  const properties = {
    "javax.net.ssl.trustStore": insidePath("trustStore"),
    "javax.net.ssl.trustStoreType": "JKS",
    "javax.net.ssl.trustStorePassword": JAVA_KEY_STORE_PASSWORD,
    "http.proxyHost": "127.0.0.1",
    "http.proxyPort": String(PROXY_PORT),
    "https.proxyHost": "127.0.0.1",
    "https.proxyPort": String(PROXY_PORT),
    "http.nonProxyHosts": "localhost|127.*|[::1]",
  };
  return Object.entries(properties)
    .map(([name, value]) => `-D${name}=${value}\n`)
    .join("");
}

let source: Buffer | undefined;
/** Next to this file, or next to the bundle that contains it. */
function nodeProxy(): Buffer {
  source ??= readFileSync(join(import.meta.dirname, insideNames.nodeProxy));
  return source;
}
