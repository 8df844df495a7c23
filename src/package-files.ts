import { existsSync, readFileSync } from "node:fs";
import { arch } from "node:os";
import { dirname, extname, join } from "node:path";

export interface PackageFiles {
  /** The folder with package.json. */
  root: string;
  /** The attack suite's probe is next to it. */
  guestPath: string;
  /** The built console; may not exist. */
  consoleDir: string;
}

/** The machine names of `uname -m`, which the prebuilt guests are named after. */
const machines: Partial<Record<string, string>> = { x64: "x86_64", arm64: "aarch64" };

/**
 * Finds the package's files from one of its modules. In a clone, setup built the guest; the npm package has one for
 * each architecture, so no compiler is needed.
 */
export function packageFiles(module: string): PackageFiles {
  const root = packageRoot(dirname(module));
  // A clone that was packed has both; the one that setup built is newer.
  const built = join(root, "guest", "build");
  const binaries = existsSync(built) ? built : join(root, "dist", "guest", machines[arch()] ?? arch());
  const console = join(root, "build", "console");
  const consoleDir = existsSync(console) ? console : join(root, "dist", "console");
  return { root, guestPath: join(binaries, "caisson-guest"), consoleDir };
}

/** Returns the version of this package. */
export function versionOf({ root }: PackageFiles): string {
  return (JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string }).version;
}

/** Returns the path of a module next to this one, with this one's extension: source or built. */
export function besideModule(module: string, name: string): string {
  return join(dirname(module), `${name}${extname(module)}`);
}

function packageRoot(from: string): string {
  return existsSync(join(from, "package.json")) ? from : packageRoot(dirname(from));
}
