import { at, type Registry, type RegistryOptions, type Routed, unknown } from "../registry.ts";
import type { Resource } from "../resource.ts";
import { rewriteSimpleHtml, rewriteSimpleJson } from "./simple-page.ts";

const NAME = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9])?$/;
const FILE_SEGMENT = /^[\w.+!~@,=-]{1,255}$/;
const json = "application/vnd.pypi.simple.v1+json";
const html = "application/vnd.pypi.simple.v1+html, text/html;q=0.5";
/** The public index keeps its files elsewhere. */
const filesHost = { domain: "pythonhosted.org", host: "files" };

/**
 * PEP 503 and 691. Files are asked for as `files/PROJECT/PATH`, or `own/PROJECT/PATH` when they lie at the index's own
 * host.
 */
export function pypiRegistry({ upstream, packages }: RegistryOptions): Registry {
  const places: Record<string, URL> = {
    files: new URL(`https://${filesHost.host}.${filesHost.domain}/`),
    own: new URL("/", upstream),
  };
  const page = (project: string, accept: string): Resource => ({
    url: at(upstream, ["simple", project, ""]),
    accept,
    keeps: "shortly",
    rewrite({ body, contentType }) {
      const rewrite = contentType.endsWith("json") ? rewriteSimpleJson : rewriteSimpleHtml;
      return {
        ...rewrite(body.toString(), { page: at(upstream, ["simple", project, ""]), project, places, prefix: "/pypi" }),
        contentType,
      };
    },
  });

  function file(place: string, project: string, path: readonly string[]): Routed {
    const base = places[place];
    if (base === undefined || path.length === 0 || !path.every((segment) => FILE_SEGMENT.test(segment))) return unknown;
    const pages = [page(project, json), page(project, html)] as const;
    const resource: Resource = {
      url: at(base, path),
      accept: "*/*",
      contentType: "application/octet-stream",
      keeps: "always",
      digest: () => packages.digestOf(pages, [place, ...path].join("/")),
    };
    return { kind: "resource", resource };
  }

  return {
    name: "pypi",
    prefixes: ["pypi"],
    upstream,
    route({ method, segments: [kind = "", name = "", ...rest], accept }) {
      if (method !== "GET" || !NAME.test(name)) return unknown;
      const project = name.toLowerCase().replaceAll(/[-_.]+/g, "-");
      if (kind === "simple")
        return rest.length === 0 ? { kind: "resource", resource: page(project, accept.includes(json) ? json : html) } : unknown;
      return Object.hasOwn(places, kind) ? file(kind, project, rest) : unknown;
    },
  };
}
