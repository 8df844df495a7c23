import { insideTarget } from "../../sandbox/inside-folder.ts";

/** Files that the host puts into every sandbox with a network, by purpose. */
export const insideNames = {
  ca: "ca.pem",
  caBundle: "ca-bundle.pem",
  trustStore: "truststore.jks",
  javaOptions: "java.options",
  nodeProxy: "node-proxy.cjs",
} as const;

/** Returns the path of one of these files inside. */
export function insidePath(name: keyof typeof insideNames): string {
  return `${insideTarget}/${insideNames[name]}`;
}
