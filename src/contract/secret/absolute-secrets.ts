import { resolve } from "node:path";
import type { SecretConfig } from "../network/network.ts";

/** Returns the secrets with absolute file paths: the process that serves them later has another working folder. */
export function absoluteSecrets<Secret extends SecretConfig>(
  secrets: Readonly<Record<string, Secret>>,
  folder: string,
): Record<string, Secret> {
  return Object.fromEntries(
    Object.entries(secrets).map(([name, secret]) => {
      const { from } = secret;
      return [name, typeof from === "object" && "file" in from ? { ...secret, from: { file: resolve(folder, from.file) } } : secret];
    }),
  );
}
