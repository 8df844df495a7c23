import { cutToWidth, displayWidth, visibleText } from "./plain-text.ts";

/** A folder in so many columns: from the home folder, `~/shop`, and of a long path its last parts, `…/shop/src`. */
export function shortPath(path: string, { home, columns }: { home: string; columns: number }): string {
  const shown = visibleText(fromHome(path, home));
  if (displayWidth(shown) <= columns) return shown;
  const parts = shown.split("/");
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
