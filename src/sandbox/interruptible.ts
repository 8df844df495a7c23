import type { Sandbox } from "./sandbox.ts";

/**
 * The same sandbox for one piece of work: its file calls are given up when the signal fires, except those that bring a
 * signal of their own.
 */
export function interruptible(sandbox: Sandbox, signal: AbortSignal): Sandbox {
  const given = <Options extends object>(options: Options | undefined) => ({ signal, ...options });
  return {
    ...sandbox,
    stat: (path, options) => sandbox.stat(path, given(options)),
    list: (path, options) => sandbox.list(path, given(options)),
    mkdir: (path, options) => sandbox.mkdir(path, given(options)),
    move: (from, to, options) => sandbox.move(from, to, given(options)),
    remove: (path, options) => sandbox.remove(path, given(options)),
    readFile: (path, options) => sandbox.readFile(path, given(options)),
    writeFile: (path, data, options) => sandbox.writeFile(path, data, given(options)),
    watch: (path, options) => sandbox.watch(path, given(options)),
    tarIn: (folder, archive, options) => sandbox.tarIn(folder, archive, given(options)),
    tarOut: (path, options) => sandbox.tarOut(path, given(options)),
  };
}
