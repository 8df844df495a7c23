import { at, ownAddresses, publicAddress, type Registry, type RegistryAddress, type RegistryOptions, unknown } from "../registry.ts";
import type { Resource } from "../resource.ts";
import { isCalledByItsName, portOf } from "../upstream-url.ts";
import { rewriteSimpleHtml, rewriteSimpleJson } from "./simple-page.ts";

const NAME = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9])?$/;
const FILE_SEGMENT = /^[\w.+!~@,=-]{1,255}$/;
const PROJECTS_MAX = 4;
const json = "application/vnd.pypi.simple.v1+json";
const html = "application/vnd.pypi.simple.v1+html, text/html;q=0.5";
/** The public index has its files on another host. */
export const pypiHosts = { index: "pypi.org", files: "files.pythonhosted.org" } as const;
const publicFiles = new URL(`https://${pypiHosts.files}/`);

/** PEP 503 and 691. A file is served if the page of its project lists it. */
export function pypiRegistry({ upstream, packages }: RegistryOptions): Registry {
  const isPublic = upstream.hostname === pypiHosts.index;
  const ownFiles = new URL("/", upstream);
  const places: Record<string, URL> = { files: publicFiles, ...(isPublic ? {} : { own: ownFiles }) };

  /** Files at the upstream's own host get names that clients with the public names can reach too. */
  const page = (project: string, { accept, byOwnName }: { accept: string; byOwnName: boolean }): Resource => ({
    url: at(upstream, ["simple", project, ""]),
    accept,
    keeps: "shortly",
    variant: byOwnName ? "own" : "public",
    rewrite({ body, contentType }) {
      const rewrite = contentType.endsWith("json") ? rewriteSimpleJson : rewriteSimpleHtml;
      const links = { page: at(upstream, ["simple", project, ""]), places, shown: byOwnName ? {} : { own: publicFiles } };
      return { ...rewrite(body.toString(), links), contentType };
    },
  });

  /** Returns all forms of a project's page, which have the same list of files. */
  const pagesOf = (project: string) =>
    [true, false].flatMap((byOwnName) => [json, html].map((accept) => page(project, { accept, byOwnName }))) as [Resource, ...Resource[]];

  const index: RegistryAddress["route"] = ({ method, segments: [kind, name = "", ...rest], accept, base }) => {
    if (method !== "GET" || kind !== "simple" || !NAME.test(name) || rest.length > 0) return unknown;
    const how = { accept: accept.includes(json) ? json : html, byOwnName: base.hostname !== pypiHosts.index };
    return { kind: "resource", resource: page(normalizeName(name), how) };
  };

  const filesOf = (served: readonly string[]): RegistryAddress["route"] => {
    return async ({ method, segments }) => {
      if (method !== "GET" || segments.length < 2 || !segments.every((segment) => FILE_SEGMENT.test(segment))) return unknown;
      const listed = await packages.firstListed(
        projectsOf(segments.at(-1) ?? "").flatMap((project) => {
          const pages = pagesOf(project);
          return served.map((place) => ({ pages, path: [place, ...segments].join("/"), place }));
        }),
      );
      if (listed === null) return unknown;
      const { file, digest } = listed;
      const about = { accept: "*/*", contentType: "application/octet-stream", keeps: "always" } as const;
      return { kind: "resource", resource: { url: at(places[file.place] as URL, segments), ...about, digest: async () => digest } };
    };
  };

  return {
    name: "pypi",
    upstream,
    addresses: [
      publicAddress(pypiHosts.index, index),
      publicAddress(pypiHosts.files, filesOf(Object.keys(places))),
      ...ownAddresses(upstream, index),
      ...(isPublic || !isCalledByItsName(upstream)
        ? []
        : [{ host: upstream.hostname, ports: [portOf(upstream)], path: "/", route: filesOf(["own"]) }]),
    ],
  };
}

/**
 * Returns the projects that a file may belong to according to its name, the likeliest first. In the name of a wheel,
 * the project has no hyphen. In the name of an old source archive it may have several, and only the project's page
 * shows where the version begins.
 */
export function projectsOf(file: string): string[] {
  const [wheel] = /^[^-]+(?=-.*\.(?:whl|egg)(?:\.metadata)?$)/.exec(file) ?? [];
  const names = wheel === undefined ? [...file.matchAll(/-(?=v?\d)/g)].map(({ index }) => file.slice(0, index)).reverse() : [wheel];
  return [...new Set(names.filter((name) => NAME.test(name)).map(normalizeName))].slice(0, PROJECTS_MAX);
}

function normalizeName(name: string): string {
  return name.toLowerCase().replaceAll(/[-_.]+/g, "-");
}
