import { mkdirSync, readdirSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { constants, Script } from "node:vm";

/**
 * Runs a script of the bundle, in the form that an earlier process of the same command compiled it to. Node's own
 * compile cache has a file as it was before its first line ran, and so without nearly all of its functions: those are
 * compiled when they are first called, by every process anew. What is kept here is taken when the process ends, with
 * every function that it called. `sum` is that of the script's text: V8 itself compares no more than its length.
 */
export function runScript(script: { dir: string; name: string; sum: string }, given: readonly unknown[]): unknown {
  const path = join(script.dir, `${script.name}.js`);
  const kept = folder === null ? null : join(folder, `${command}-${script.name}-${script.sum}`);
  const cachedData = kept === null ? undefined : readKept(kept);
  const compiled = new Script(readFileSync(path, "utf8"), {
    filename: path,
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
    ...(cachedData && { cachedData }),
  });
  if (kept !== null) keepAtExit(compiled, { path: kept, isNew: cachedData === undefined || compiled.cachedDataRejected === true });
  return compiled.runInThisContext()(...given);
}

const command = /^[a-z]{1,20}$/.exec(process.argv[2] ?? "")?.[0];
const folder = keptFolder();

/** Null for a program that only uses the library, for a start without a command, and where nothing is to be kept. */
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

/** Undefined for what is not there, or not whole: V8 does not look, and ends the process over what it cannot read. */
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
 * Twice, so that damage shows: that is against a disk, not against somebody, since who can write here can change the program, too. To compare the two
 * takes nothing; a sum of `node:zlib` would cost every command 6 ms, one of `node:crypto` 12, nearly all of it to load them.
 */
const doubled = (data: Buffer) => Buffer.concat([data, data]);

const scripts: { compiled: Script; path: string; isNew: boolean }[] = [];

/**
 * Only of what went well: a word that is no command leaves nothing. With a script that is new, the others are kept again:
 * the command went another way than before, as with a station or without, and called other functions of theirs, too.
 */
function keepAtExit(compiled: Script, kept: { path: string; isNew: boolean }): void {
  if (scripts.length === 0) {
    process.once("exit", (code) => {
      if (code === 0 && scripts.some(({ isNew }) => isNew)) for (const script of scripts) keep(script.compiled, script.path);
    });
  }
  scripts.push({ compiled, ...kept });
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
    // A full disk, or a folder that is not ours: the next process compiles as this one did.
    rmSync(partial, { force: true });
  }
}

/** What was kept of the same script with another text. */
function removeEarlier(path: string): void {
  const prefix = path.slice(0, path.lastIndexOf("-") + 1);
  for (const name of readdirSync(dirname(path))) {
    const other = join(dirname(path), name);
    if (other.startsWith(prefix) && other !== path && !name.endsWith(`.${process.pid}`)) rmSync(other, { force: true });
  }
}
