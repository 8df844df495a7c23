import { zip } from "./archives.ts";
import { fileItem, jsonItem, type Shelf, textItem } from "./shelf.ts";

export interface GoModule {
  path: string;
  version: string;
}

/** Serves the GOPROXY protocol. It has no checksum database, so clients need GOSUMDB=off. */
export function goShelf(modules: readonly GoModule[]): Shelf {
  const shelf: Shelf = new Map();
  for (const path of new Set(modules.map((one) => one.path))) {
    const escaped = path.replaceAll(/[A-Z]/g, (letter) => `!${letter.toLowerCase()}`);
    const versions = modules.filter((one) => one.path === path).map(({ version }) => version);
    shelf.set(`${escaped}/@v/list`, textItem(`${versions.join("\n")}\n`));
    for (const version of versions) {
      const mod = `module ${path}\n\ngo 1.20\n`;
      const info = { Version: version, Time: "2020-01-01T00:00:00Z" };
      shelf.set(`${escaped}/@v/${version}.info`, jsonItem(info));
      shelf.set(`${escaped}/@latest`, jsonItem(info));
      shelf.set(`${escaped}/@v/${version}.mod`, textItem(mod));
      const code = `package tiny\n\nconst Name = "${path} ${version}"\n`;
      shelf.set(
        `${escaped}/@v/${version}.zip`,
        fileItem(
          zip([
            [`${path}@${version}/go.mod`, mod],
            [`${path}@${version}/tiny.go`, code],
          ]),
        ),
      );
    }
  }
  return shelf;
}
