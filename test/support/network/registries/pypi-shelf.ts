import { zip } from "./archives.ts";
import { fileItem, hash, jsonItem, type Shelf, textItem } from "./shelf.ts";

export interface PythonPackage {
  /** The normalized name. */
  name: string;
  version: string;
  requires?: readonly string[];
}

/** An index like PyPI's, with HTML and JSON pages, wheels and their metadata. Files are on the index's own host. */
export function pypiShelf(base: string, packages: readonly PythonPackage[]): Shelf {
  const shelf: Shelf = new Map();
  for (const name of new Set(packages.map((one) => one.name))) {
    const files = packages.filter((one) => one.name === name).map((one) => wheel(one));
    for (const { path, body, metadata } of files) {
      shelf.set(path, fileItem(body));
      shelf.set(`${path}.metadata`, fileItem(metadata));
    }
    const json = {
      meta: { "api-version": "1.1" },
      name,
      versions: packages.filter((one) => one.name === name).map(({ version }) => version),
      files: files.map(({ filename, path, body, metadata }) => ({
        filename,
        url: `${base}${path}`,
        hashes: { sha256: hash("sha256", body) },
        size: body.length,
        "upload-time": "2020-01-01T00:00:00.000000Z",
        "requires-python": ">=3.7",
        "core-metadata": { sha256: hash("sha256", metadata) },
      })),
    };
    const links = files.map(({ filename, path, body, metadata }) => {
      const known = `data-requires-python="&gt;=3.7" data-core-metadata="sha256=${hash("sha256", metadata)}"`;
      return `<a href="${base}${path}#sha256=${hash("sha256", body)}" ${known}>${filename}</a><br/>`;
    });
    const html = `<!DOCTYPE html><html><body><h1>Links for ${name}</h1>${links.join("\n")}</body></html>`;
    shelf.set(`simple/${name}/`, ({ accept = "" }) =>
      accept.includes("+json") ? jsonItem(json, "application/vnd.pypi.simple.v1+json") : textItem(html, "text/html; charset=UTF-8"),
    );
  }
  return shelf;
}

function wheel({ name, version, requires = [] }: PythonPackage) {
  const module = name.replaceAll("-", "_");
  const info = `${module}-${version}.dist-info`;
  const lines = ["Metadata-Version: 2.1", `Name: ${name}`, `Version: ${version}`, ...requires.map((one) => `Requires-Dist: ${one}`), ""];
  const metadata = Buffer.from(lines.join("\n"));
  const body = zip([
    [`${module}.py`, `value = "${name} ${version}"\n`],
    [`${info}/METADATA`, metadata],
    [`${info}/WHEEL`, "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"],
    [`${info}/RECORD`, [`${module}.py,,`, `${info}/METADATA,,`, `${info}/WHEEL,,`, `${info}/RECORD,,`, ""].join("\n")],
  ]);
  const filename = `${module}-${version}-py3-none-any.whl`;
  return { filename, path: `packages/aa/bb/${hash("sha256", body).slice(0, 20)}/${filename}`, body, metadata };
}
