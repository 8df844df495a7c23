import { AgentDefinition } from "../../contract/agent.ts";
import { LOCAL_OWNER } from "../../contract/owner.ts";
import type { RunEvent } from "../../contract/run-event.ts";
import type { NumberedRunEvent } from "../runs/verbs.ts";
import { applyEndedCall } from "./ended-call.ts";
import { askedCall, taskWords } from "./seen-call.ts";
import { noteProgress, type Trajectory } from "./trajectory.ts";

const OPEN_MAX = 64;
const FILES_MAX = 64;
const TASK_CHARACTERS_MAX = 2000;
const WORDS_CHARACTERS_MAX = 1000;
const PATH_CHARACTERS_MAX = 200;

/** Types of events that say something about a trajectory; everything else is not even read. */
export const trajectoryTypes = [
  "run.created",
  "run.claimed",
  "run.queued",
  "run.paused",
  "run.continued",
  "run.ended",
  "run.reopened",
  "step.started",
  "model.ended",
  "gateway.called",
  "tool.requested",
  "tool.ended",
  "file.changed",
  "todo.changed",
  "artifact.stored",
  "message.received",
  "permission.answered",
  "guardian.decided",
  "guardian.settled",
  "guardian.judged",
] as const satisfies readonly RunEvent["type"][];
type TrajectoryEvent = Extract<NumberedRunEvent, { type: (typeof trajectoryTypes)[number] }>;
const followed: ReadonlySet<string> = new Set(trajectoryTypes);

/** Adds one event, in place. One that is in it already changes nothing. */
export function foldTrajectory(trajectory: Trajectory, event: NumberedRunEvent): void {
  if (event.seq <= trajectory.seq) return;
  trajectory.seq = event.seq;
  const { workedMs } = event.data as { workedMs?: number };
  if (workedMs !== undefined) trajectory.workedMs = Math.max(trajectory.workedMs, workedMs);
  if (followed.has(event.type)) apply(trajectory, event as TrajectoryEvent);
}

function apply(trajectory: Trajectory, event: TrajectoryEvent): void {
  switch (event.type) {
    case "run.created":
      applyCreated(trajectory, event);
      return;
    case "run.claimed":
    case "run.continued":
      trajectory.status = "working";
      trajectory.stuck = null;
      return;
    case "run.queued":
      trajectory.status = "queued";
      return;
    case "run.paused":
      trajectory.status = "held";
      if (event.data.why === "stuck") trajectory.stuck = { seq: event.seq, text: event.data.text };
      return;
    case "run.ended":
      trajectory.status = "ended";
      return;
    case "run.reopened":
      trajectory.status = "queued";
      trajectory.stuck = null;
      trajectory.isAttended = event.data.onAsk === undefined ? trajectory.isAttended : event.data.onAsk === "wait";
      noteProgress(trajectory, event.seq, "somebody let the run go on", { byPerson: true });
      return;
    case "step.started":
      trajectory.status = "working";
      trajectory.steps += 1;
      // What was only waited for is no step that could have brought it further.
      if (trajectory.stepWaits === false) trajectory.activeSteps += 1;
      trajectory.stepWaits = null;
      return;
    case "model.ended":
      spend(trajectory, event.data);
      trajectory.lastWords = textOf(event.data.parts);
      return;
    case "gateway.called":
      spend(trajectory, event.data);
      return;
    case "tool.requested":
      if (trajectory.open.size < OPEN_MAX)
        trajectory.open.set(event.data.call, askedCall(event.data.name, event.data.arguments, trajectory.words));
      return;
    case "file.changed":
      applyFile(trajectory, event.data.path);
      return;
    case "tool.ended":
      applyEndedCall(trajectory, event);
      return;
    case "todo.changed": {
      const done = event.data.todo.filter(({ status }) => status === "completed").length;
      if (done > trajectory.todoDone) noteProgress(trajectory, event.seq, "a point of its list is done");
      trajectory.todoDone = done;
      return;
    }
    case "artifact.stored":
      noteProgress(trajectory, event.seq, "a file was left with the station");
      return;
    case "message.received":
      // Whoever is told something new has as long as at the beginning.
      if (event.data.source === "user") noteProgress(trajectory, event.seq, "somebody told it something", { byPerson: true });
      return;
    case "permission.answered":
      if (event.data.answer !== "deny") noteProgress(trajectory, event.seq, "somebody answered it", { byPerson: true });
      return;
    case "guardian.decided":
      trajectory.standing = {
        decision: event.data.decision,
        seq: event.seq,
        step: trajectory.activeSteps,
        detectors: event.data.findings.map(({ detector }) => detector),
      };
      trajectory.decidedSeq = event.seq;
      trajectory.isKnownDuplicate ||= trajectory.standing.detectors.includes("duplicate");
      trajectory.failing = null;
      return;
    case "guardian.settled":
      trajectory.standing = null;
      trajectory.unheeded = event.data.effect === "progress" ? 0 : trajectory.unheeded + 1;
      return;
    case "guardian.judged": {
      const { calls, costUsd } = trajectory.judged;
      const { coherence, text } = event.data;
      trajectory.judged = {
        calls: calls + 1,
        costUsd: costUsd + (event.data.costUsd ?? 0),
        step: trajectory.activeSteps,
        coherence,
        text,
        seq: event.seq,
      };
      return;
    }
    default:
      event satisfies never;
  }
}

function applyCreated(trajectory: Trajectory, { at, data }: Extract<TrajectoryEvent, { type: "run.created" }>): void {
  const { guardian, harness } = AgentDefinition.parse(data.agent.definition);
  trajectory.owner = data.owner ?? LOCAL_OWNER;
  trajectory.agent = data.agent.name;
  trajectory.session = data.session;
  trajectory.task = data.task.slice(0, TASK_CHARACTERS_MAX);
  trajectory.words = taskWords(data.task);
  trajectory.parent = data.parent?.run ?? null;
  trajectory.createdAt = at;
  trajectory.asked = guardian ?? {};
  trajectory.isAttended = harness.onAsk === "wait";
}

function applyFile(trajectory: Trajectory, path: string): void {
  const short = path.slice(0, PATH_CHARACTERS_MAX);
  trajectory.files = [...trajectory.files.filter((each) => each !== short), short].slice(-FILES_MAX);
}

function spend(trajectory: Trajectory, { usage, costUsd }: Extract<TrajectoryEvent, { type: "model.ended" }>["data"] | GatewayData): void {
  trajectory.tokens += usage.inputTokens + usage.outputTokens;
  trajectory.costUsd += costUsd ?? 0;
}
type GatewayData = Extract<TrajectoryEvent, { type: "gateway.called" }>["data"];

function textOf(parts: Extract<TrajectoryEvent, { type: "model.ended" }>["data"]["parts"]): string {
  return parts
    .flatMap((part) => (part.kind === "text" ? [part.text] : []))
    .join(" ")
    .slice(0, WORDS_CHARACTERS_MAX);
}
