import { execFile } from "node:child_process";
import { promisify } from "node:util";

/**
 * Evaluates `expression` over a module's exports (`own`) in a process that cannot open further files. Resolves to the
 * error's code, or to the value as JSON.
 */
export async function withoutFileHandles(module: URL, expression: string): Promise<string> {
  const program = `
    import { openSync } from "node:fs";
    import * as own from ${JSON.stringify(module.href)};
    try { for (;;) openSync("/dev/null") } catch (error) { if (error.code !== "EMFILE") throw error }
    try { console.log(JSON.stringify(await ${expression})) } catch (error) { console.log(error.code ?? error.message) }
  `;
  const argv = ["-c", 'ulimit -n 96; exec "$@"', "sh", process.execPath, "--input-type=module", "-e", program];
  const { stdout } = await promisify(execFile)("sh", argv, { encoding: "utf8" });
  return stdout.trim();
}
