import { resolve } from "node:path";
import type { SecretSpec } from "./network.ts";

/** The same secrets, their files named from the root: whoever serves them later stands elsewhere. */
export function absoluteSecrets<Secret extends SecretSpec>(
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
