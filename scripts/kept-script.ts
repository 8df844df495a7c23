import { mkdirSync, readdirSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { constants, Script } from "node:vm";

/**
 * Runs a script of the bundle with the compiled code that an earlier process of the same command stored. Node's own
 * compile cache stores the code before its first line runs. That code lacks nearly all functions, so every process
 * compiles them again when it first calls them. We store the code when the process ends, with every function that it
 * called. `sum` is the checksum of the script's text, because V8 itself compares only the length.
 */
export function runScript(script: { dir: string; name: string; sum: string }, importedValues: readonly unknown[]): unknown {
  const path = join(script.dir, `${script.name}.js`);
  const cachePath = folder === null ? null : join(folder, `${command}-${script.name}-${script.sum}`);
  const cachedData = cachePath === null ? undefined : readKept(cachePath);
  const compiled = new Script(readFileSync(path, "utf8"), {
    filename: path,
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
    ...(cachedData && { cachedData }),
  });
  if (cachePath !== null)
    keepAtExit(compiled, { path: cachePath, isNew: cachedData === undefined || compiled.cachedDataRejected === true });
  return compiled.runInThisContext()(...importedValues);
}

const command = /^[a-z]{1,20}$/.exec(process.argv[2] ?? "")?.[0];
const folder = keptFolder();

/** Returns null if a program only uses the library, if there is no command, or if there is no cache folder. */
function keptFolder(): string | null {
  const { NODE_COMPILE_CACHE: cache } = process.env;
  if (cache === undefined || command === undefined || !isCommandLine()) return null;
  return join(cache, `scripts-${process.version}-${process.arch}`);
}

function isCommandLine(): boolean {
  try {
    return realpathSync(process.argv[1] ?? "") === join(import.meta.dirname, "caisson.mjs");
  } catch {
    return false;
  }
}

/**
 * Returns undefined if the file is missing or damaged. V8 does not check the data, and damaged data ends the process.
 */
function readKept(path: string): Buffer | undefined {
  try {
    const content = readFileSync(path);
    const [data, copy] = [content.subarray(0, content.length / 2), content.subarray(content.length / 2)];
    return data.length > 0 && data.equals(copy) ? data : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Stores the data twice, to detect damage. This guards against a bad disk, not an attacker: a user who can write here
 * can also change the program. Comparing the two copies costs nothing. A checksum would cost every command 6 ms with
 * `node:zlib` or 12 ms with `node:crypto`, nearly all of it for loading the module.
 */
const doubled = (data: Buffer) => Buffer.concat([data, data]);

const scripts: { compiled: Script; path: string; isNew: boolean }[] = [];

/**
 * Stores scripts only after success, so an unknown command stores nothing. If one script is new, stores the others
 * again: the command took another path than before, for example through a station, and so called other functions in
 * them.
 */
function keepAtExit(compiled: Script, cacheEntry: { path: string; isNew: boolean }): void {
  if (scripts.length === 0) {
    process.once("exit", (code) => {
      if (code === 0 && scripts.some(({ isNew }) => isNew)) for (const script of scripts) keep(script.compiled, script.path);
    });
  }
  scripts.push({ compiled, ...cacheEntry });
}

function keep(compiled: Script, path: string): void {
  const partial = `${path}.${process.pid}`;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    const data = compiled.createCachedData();
    writeFileSync(partial, doubled(data), { mode: 0o600 });
    renameSync(partial, path);
    removeEarlier(path);
  } catch {
    // The disk is full, or the folder is not ours. The next process compiles the script again.
    rmSync(partial, { force: true });
  }
}

/** Removes the code that was stored for other versions of the same script. */
function removeEarlier(path: string): void {
  const prefix = path.slice(0, path.lastIndexOf("-") + 1);
  for (const name of readdirSync(dirname(path))) {
    const other = join(dirname(path), name);
    if (other.startsWith(prefix) && other !== path && !name.endsWith(`.${process.pid}`)) rmSync(other, { force: true });
  }
}
