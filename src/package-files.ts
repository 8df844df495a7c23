import { existsSync, readFileSync } from "node:fs";
import { arch } from "node:os";
import { dirname, extname, join } from "node:path";

export interface PackageFiles {
  /** Where package.json is. */
  root: string;
  /** The attack suite's probe lies beside it. */
  guestPath: string;
  /** The built console, where it was built. */
  consoleDir: string;
}

/** As `uname -m` says it, which is how the prebuilt guests are named. */
const machines: Partial<Record<string, string>> = { x64: "x86_64", arm64: "aarch64" };

/**
 * The files that come with this package, found from one of its modules: in a clone the guest was built by set-up;
 * installed from npm there is one for each architecture, so that no compiler is needed.
 */
export function packageFiles(module: string): PackageFiles {
  const root = packageRoot(dirname(module));
  // A clone has both, once it was packed; what set-up built is the newer one.
  const built = join(root, "guest", "build");
  const binaries = existsSync(built) ? built : join(root, "dist", "guest", machines[arch()] ?? arch());
  const console = join(root, "build", "console");
  const consoleDir = existsSync(console) ? console : join(root, "dist", "console");
  return { root, guestPath: join(binaries, "caisson-guest"), consoleDir };
}

/** Of this package. */
export function versionOf({ root }: PackageFiles): string {
  return (JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string }).version;
}

/** A module beside this one, in whichever form this one is: source or built. */
export function besideModule(module: string, name: string): string {
  return join(dirname(module), `${name}${extname(module)}`);
}

function packageRoot(from: string): string {
  return existsSync(join(from, "package.json")) ? from : packageRoot(dirname(from));
}
