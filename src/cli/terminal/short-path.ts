import { cutToWidth, displayWidth, visibleText } from "./plain-text.ts";

/**
 * Shortens a folder to a number of columns: relative to the home folder (`~/shop`), or to its last parts
 * (`…/shop/src`).
 */
export function shortPath(path: string, { home, columns }: { home: string; columns: number }): string {
  const displayPath = visibleText(fromHome(path, home));
  if (displayWidth(displayPath) <= columns) return displayPath;
  const parts = displayPath.split("/");
  for (let first = 1; first < parts.length; first++) {
    const short = `…/${parts.slice(first).join("/")}`;
    if (displayWidth(short) <= columns) return short;
  }
  return cutToWidth(`…/${parts.at(-1)}`, columns);
}

function fromHome(path: string, home: string): string {
  if (home === "" || home === "/") return path;
  if (path === home) return "~";
  return path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path;
}
