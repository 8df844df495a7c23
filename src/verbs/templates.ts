import { z } from "zod";
import { reachOfBuild, reachOfImport } from "../contract/api/required-scopes.ts";
import { TemplateWord } from "../contract/ids.ts";
import { TemplateView } from "../contract/template/template.ts";
import { BuildEvent, BuildTemplate, ImportTemplate, ListTemplates, TagTemplate } from "../contract/template/template-verbs.ts";
import { type VerbsOf, verb } from "./verb.ts";

const template = { template: TemplateWord };

/**
 * Templates: files and settings that sandboxes start from. A template is named by its id, an id prefix or one of its
 * names. Verbs that take one throw `not_found`, and `invalid` for an ambiguous prefix.
 */
export const templates = {
  /**
   * Builds a template from a Dockerfile or devcontainer.json, in sandboxes: yields progress, then the template. A step
   * whose inputs are unchanged comes from the cache. Stopping the stream stops the build; finished steps remain cached.
   * Throws `invalid` (also if a command fails), `not_found`, `unsupported` for what a template cannot have, `unsafe`,
   * `too_large`, `no_space`, `denied`.
   */
  build: verb({
    path: "POST /v1/templates",
    takes: BuildTemplate,
    gives: BuildEvent,
    kind: "items",
    signal: true,
    owner: true,
    reaches: reachOfBuild,
    scope: "run",
    owned: "by hand",
    summary: "Build a template: progress event by event, then the template. A name moves from the template that had it.",
  }),
  /**
   * Makes a template from an image: an OCI layout, an archive, or a name in a registry. Yields and throws as `build`.
   */
  import: verb({
    path: "POST /v1/templates/import",
    takes: ImportTemplate,
    gives: BuildEvent,
    kind: "items",
    signal: true,
    owner: true,
    reaches: reachOfImport,
    scope: "run",
    owned: "by hand",
    summary: "Make a template from an image: progress event by event, then the template.",
  }),
  /** Oldest first. */
  list: verb({
    path: "GET /v1/templates",
    takes: ListTemplates,
    gives: z.array(TemplateView),
    key: "templates",
    scope: "read",
    owned: "by hand",
    summary: "List templates, oldest first.",
  }),
  get: verb({
    path: "GET /v1/templates/{template}",
    params: template,
    gives: TemplateView,
    owner: true,
    scope: "read",
    owned: "by hand",
    summary: "Get one template.",
  }),
  /** Gives a template another name, which moves from the template that had it. */
  tag: verb({
    path: "POST /v1/templates/{template}/names",
    params: template,
    takes: TagTemplate,
    gives: TemplateView,
    owner: true,
    scope: "run",
    owned: "by hand",
    summary: "Give a template another name, which moves from the template that had it.",
  }),
  /** Removes a name, or with an id the template. Its files stay in the build cache until `machine.prune`. */
  remove: verb({
    path: "DELETE /v1/templates/{template}",
    params: template,
    owner: true,
    scope: "run",
    owned: "by hand",
    summary: "Remove a name of a template, or with an id the template and all its names.",
  }),
  /** Streams the tar archive of an OCI layout with the template as an image. Throws `no_space`. */
  export: verb({
    path: "GET /v1/templates/{template}/archive",
    params: template,
    kind: "bytes",
    media: "application/x-tar",
    owner: true,
    scope: "run",
    owned: "by hand",
    summary: "Export a template as the tar archive of an OCI layout.",
  }),
};

export type TemplateVerbs = VerbsOf<typeof templates>;
