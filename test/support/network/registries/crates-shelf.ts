import { tarGz } from "./archives.ts";
import { fileItem, hash, jsonItem, type Shelf, textItem } from "./shelf.ts";

export interface Crate {
  name: string;
  version: string;
}

/** A sparse index, with its crates under `api/v1/crates`. */
export function cratesShelf(base: string, crates: readonly Crate[]): Shelf {
  const shelf: Shelf = new Map([["config.json", jsonItem({ dl: `${base}api/v1/crates`, api: base })]]);
  for (const name of new Set(crates.map((one) => one.name))) {
    const lines = crates
      .filter((one) => one.name === name)
      .map(({ version }) => {
        const body = tarGz([
          [`${name}-${version}/Cargo.toml`, `[package]\nname = "${name}"\nversion = "${version}"\nedition = "2021"\n`],
          [`${name}-${version}/src/lib.rs`, `pub const NAME: &str = "${name} ${version}";\n`],
        ]);
        shelf.set(`api/v1/crates/${name}/${version}/download`, fileItem(body));
        return JSON.stringify({ name, vers: version, deps: [], cksum: hash("sha256", body), features: {}, yanked: false });
      });
    shelf.set(indexPath(name.toLowerCase()), textItem(`${lines.join("\n")}\n`));
  }
  return shelf;
}

function indexPath(name: string): string {
  if (name.length <= 3) return name.length === 3 ? `3/${name[0]}/${name}` : `${name.length}/${name}`;
  return `${name.slice(0, 2)}/${name.slice(2, 4)}/${name}`;
}
