import { mkdirSync, readdirSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { constants, Script } from "node:vm";

/**
 * Runs a script of the bundle, in the form to which an earlier process of the same command compiled it. Node's own
 * compile cache stores a file as it was before its first line ran, and so without nearly all of its functions: every
 * process compiles those again when it first calls them. The form that we store is taken when the process ends, with
 * every function that it called. `sum` is the checksum of the script's text: V8 itself compares no more than its
 * length.
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

/** Null for a program that only uses the library, for a start without a command, and if there is no cache folder. */
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

/** Undefined if the file is missing or damaged: V8 does not check, and ends the process over what it cannot read. */
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
 * Stores the data twice, so that damage shows. That guards against a bad disk, not an attacker: a user who can write
 * here can change the program too. Comparing the two copies costs nothing; a checksum of `node:zlib` would cost every
 * command 6 ms, one of `node:crypto` 12, nearly all of it to load them.
 */
const doubled = (data: Buffer) => Buffer.concat([data, data]);

const scripts: { compiled: Script; path: string; isNew: boolean }[] = [];

/**
 * Stores only after success: a word that is not a command leaves nothing. If one script is new, the others are stored
 * again: the command took another path than before, as with a station or without, and called other functions of theirs
 * too.
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
    // The disk is full, or the folder is not ours: the next process compiles as this one did.
    rmSync(partial, { force: true });
  }
}

/** Removes what was stored of the same script with another text. */
function removeEarlier(path: string): void {
  const prefix = path.slice(0, path.lastIndexOf("-") + 1);
  for (const name of readdirSync(dirname(path))) {
    const other = join(dirname(path), name);
    if (other.startsWith(prefix) && other !== path && !name.endsWith(`.${process.pid}`)) rmSync(other, { force: true });
  }
}
