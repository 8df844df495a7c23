import { z } from "zod";
import { AttackVerdict, SignedReport } from "../attack-report.ts";
import { BuildImage, ImageName, ImageView } from "../image-verbs.ts";
import {
  AttackSubject,
  ConformanceReport,
  ConformanceResult,
  DoctorReport,
  MachineStats,
  MachineUsage,
  ModelList,
  NamedThing,
  Pruned,
  PruneMachine,
  RuntimeChoice,
  SuiteSubject,
  TaskNeeds,
} from "../machine-verbs.ts";
import { reachOfDoctor } from "./reach.ts";
import type { Route } from "./route.ts";

export const machineRoutes = {
  "machine.doctor": {
    summary: "What works on the station's machine, by really trying it; with `model`, also whether that model answers.",
    scope: "run",
    query: z.strictObject({
      only: z.array(z.string().min(1).max(32)).max(10).optional(),
      model: z.string().min(1).max(200).optional(),
    }),
    reaches: reachOfDoctor,
    answer: { json: DoctorReport },
  },
  "machine.find": {
    summary: "What an id, the beginning of one, or a name stands for.",
    scope: "read",
    query: z.strictObject({ word: z.string().min(1).max(200) }),
    answer: { json: NamedThing },
  },
  "machine.stats": {
    summary: "What the station's machine has and how busy it is, and how many sandboxes and runs there are.",
    scope: "read",
    answer: { json: MachineStats },
  },
  "machine.models": {
    summary: "List the models that the station's keys allow, and the default. With `check`, refuse a model that cannot be used.",
    scope: "run",
    query: z.strictObject({ check: z.string().min(1).max(200).optional() }),
    reaches: (body, { check }) => reachOfDoctor(body, { model: check }),
    answer: { json: ModelList },
  },
  "machine.usage": { summary: "What takes room in the station's state folder.", scope: "admin", answer: { json: MachineUsage } },
  "machine.prune": {
    summary: "Remove what nobody uses, or say what would go.",
    scope: "admin",
    body: PruneMachine,
    answer: { json: Pruned },
  },
  "machine.backup": {
    summary: "Everything that the state folder keeps, as an archive that `caisson restore` brings back. The station goes on meanwhile.",
    scope: "admin",
    body: z.strictObject({ compressed: z.boolean().default(false) }),
    bodyOptional: true,
    answer: { bytes: "application/x-tar" },
  },
  "machine.choose": {
    summary: "The runtime that suits a task, and why; null when none does.",
    scope: "run",
    body: TaskNeeds,
    bodyOptional: true,
    answer: { json: z.object({ choice: RuntimeChoice.nullable() }) },
  },
  "machine.attack": {
    summary: "Attack a runtime, or a station that is started for it: each verdict as it is reached, at last the signed report.",
    scope: "admin",
    body: AttackSubject,
    bodyOptional: true,
    answer: { events: z.union([z.object({ verdict: AttackVerdict }), z.object({ signed: SignedReport })]) },
  },
  "machine.conformance": {
    summary: "Try whether a runtime does what every runtime must: each result, at last the report.",
    scope: "admin",
    body: SuiteSubject,
    bodyOptional: true,
    answer: { events: z.union([z.object({ result: ConformanceResult }), z.object({ report: ConformanceReport })]) },
  },
  "images.list": {
    summary: "List the images that were built here.",
    scope: "read",
    answer: { json: z.object({ images: z.array(ImageView) }) },
  },
  "images.build": {
    summary: "Build an image: what is being done, line by line, at last the image. One of the same name is replaced.",
    scope: "admin",
    body: BuildImage,
    answer: { events: z.union([z.object({ progress: z.string() }), z.object({ image: ImageView })]) },
  },
  "images.remove": { summary: "Remove an image.", scope: "admin", params: { image: ImageName }, answer: {} },
} as const satisfies Record<string, Route>;
