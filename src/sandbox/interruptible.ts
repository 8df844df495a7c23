import type { Sandbox } from "./sandbox.ts";

/**
 * Returns the sandbox for one piece of work: its file calls are cancelled when the signal fires, except calls with
 * their own signal.
 */
export function interruptible(sandbox: Sandbox, signal: AbortSignal): Sandbox {
  const withSignal = <Options extends object>(options: Options | undefined) => ({ signal, ...options });
  return {
    ...sandbox,
    stat: (path, options) => sandbox.stat(path, withSignal(options)),
    list: (path, options) => sandbox.list(path, withSignal(options)),
    mkdir: (path, options) => sandbox.mkdir(path, withSignal(options)),
    move: (from, to, options) => sandbox.move(from, to, withSignal(options)),
    remove: (path, options) => sandbox.remove(path, withSignal(options)),
    readFile: (path, options) => sandbox.readFile(path, withSignal(options)),
    writeFile: (path, data, options) => sandbox.writeFile(path, data, withSignal(options)),
    watch: (path, options) => sandbox.watch(path, withSignal(options)),
    tarIn: (folder, archive, options) => sandbox.tarIn(folder, archive, withSignal(options)),
    tarOut: (path, options) => sandbox.tarOut(path, withSignal(options)),
  };
}
