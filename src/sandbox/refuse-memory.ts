import { CaissonError } from "../contract/error/error.ts";

/** Throws `unsupported` for runtimes that cannot store processes. */
export function refuseMemory({ memory = false, toDisk = false }: { memory?: boolean; toDisk?: boolean }, runtime: string): void {
  if (!memory && !toDisk) return;
  throw new CaissonError("unsupported", `the ${runtime} runtime cannot store processes`, {
    hint: `Omit ${memory ? "--memory" : "--to-disk"}, or use the oci runtime as root, with CRIU (\`caisson doctor\`).`,
  });
}
