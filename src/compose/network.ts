import { execFile, spawn } from "node:child_process";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { costOf, findPrice } from "../agent/model/prices.ts";
import type { PriceTable } from "../contract/model/price.ts";
import type { NetworkHost } from "../network/network-host.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** Provides what networks need from the host: the programs it starts for them, and prices. */
export function composeNetwork(options: {
  stateDir: string;
  /** The command line that starts this program as a keeper. */
  program: readonly [string, ...string[]];
  env: Environment;
  settings: NetworkHost["settings"];
  ownPrices: PriceTable;
  redactors: NetworkHost["redactors"];
  onEvent?: NetworkHost["onEvent"];
  warn?: NetworkHost["warn"];
}): NetworkHost {
  const { stateDir } = options;
  return {
    stateDir,
    redactors: options.redactors,
    variable: (name) => options.env[name],
    settings: options.settings,
    ...(options.onEvent === undefined ? {} : { onEvent: options.onEvent }),
    ...(options.warn === undefined ? {} : { warn: options.warn }),
    async runCommand([file = "", ...args], { timeoutMs, bytesMax }) {
      const { stdout } = await promisify(execFile)(file, args, { timeout: timeoutMs, maxBuffer: bytesMax, encoding: "utf8" });
      return stdout;
    },
    async startKeeper(sandbox) {
      await startDetached({ program: options.program, args: ["net", "serve", sandbox], stateDir, env: options.env });
    },
    prices: (wire, model, usage) => costOf(usage, findPrice(`${wire}/${model}`, options.ownPrices)),
  };
}

/**
 * Starts the program without a terminal: its output goes to a file of the state folder, and no process needs to wait
 * for it. `ended` resolves when it ends.
 */
export async function startDetached(options: {
  program: readonly [string, ...string[]];
  args: readonly string[];
  stateDir: string;
  env: Environment;
  logName?: string;
}): Promise<{ ended: Promise<void> }> {
  const [file, ...first] = options.program;
  await using log = await open(join(options.stateDir, options.logName ?? "background.log"), "a", 0o600);
  const child = spawn(file, [...first, ...options.args], {
    detached: true,
    stdio: ["ignore", log.fd, log.fd],
    env: { ...options.env, CAISSON_HOME: options.stateDir },
  });
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  await new Promise((resolve, reject) => child.once("spawn", resolve).once("error", reject));
  child.unref();
  return { ended };
}
