import { AgentDefinition } from "../../contract/agent/agent.ts";
import type { EventFor } from "../../contract/event/event-family.ts";
import { type Handlers, handle } from "../../contract/event/handlers.ts";
import type { runEvents } from "../../contract/run/run-event.ts";
import { LOCAL_OWNER } from "../../contract/token/owner.ts";
import type { NumberedRunEvent } from "../../verbs/runs.ts";
import { fingerprintCall, taskWords } from "./call-fingerprint.ts";
import { applyEndedCall } from "./ended-call.ts";
import { emptyTrajectory, noteProgress, type Trajectory } from "./trajectory.ts";

const OPEN_MAX = 64;
const FILES_MAX = 64;
const TASK_CHARACTERS_MAX = 2000;
const WORDS_CHARACTERS_MAX = 1000;
const PATH_CHARACTERS_MAX = 200;

type TrajectoryEvent = EventFor<typeof runEvents, "guardian"> & { seq: number };
type EventOf<Type extends TrajectoryEvent["type"]> = Extract<TrajectoryEvent, { type: Type }>;

/** Adds one event, in place. Ignores events that are already in the trajectory. */
export function foldTrajectory(trajectory: Trajectory, event: NumberedRunEvent): void {
  if (event.seq <= trajectory.seq) return;
  trajectory.seq = event.seq;
  const { workedMs } = event.data as { workedMs?: number };
  if (workedMs !== undefined) trajectory.workedMs = Math.max(trajectory.workedMs, workedMs);
  handle(handlers, event, trajectory);
}

const handlers: Handlers<TrajectoryEvent, Trajectory> = {
  "run.created": applyCreated,
  "run.claimed": applyWorking,
  "run.continued": applyWorking,
  "run.queued": (_, trajectory) => {
    trajectory.status = "queued";
  },
  "run.paused": ({ seq, data: { why, text } }, trajectory) => {
    trajectory.status = "held";
    if (why === "stuck") trajectory.stuck = { seq, text };
  },
  "run.ended": (_, trajectory) => {
    trajectory.status = "ended";
  },
  "run.reopened": ({ seq, data: { onAsk } }, trajectory) => {
    trajectory.status = "queued";
    trajectory.stuck = null;
    if (onAsk !== undefined) trajectory.isAttended = onAsk === "wait";
    noteProgress(trajectory, seq, "a person continued the run", { byPerson: true });
  },
  "run.forked": applyForked,
  "run.rewound": ({ seq }, trajectory) => {
    trajectory.status = "held";
    trajectory.stuck = null;
    trajectory.open.clear();
    noteProgress(trajectory, seq, "a person rewound the run", { byPerson: true });
  },
  "step.started": (_, trajectory) => {
    trajectory.status = "working";
    trajectory.steps += 1;
    // A step that only waited could not have made progress.
    if (trajectory.stepWaits === false) trajectory.activeSteps += 1;
    trajectory.stepWaits = null;
  },
  "model.ended": (event, trajectory) => {
    spend(event, trajectory);
    trajectory.lastWords = textOf(event.data.parts);
  },
  "gateway.called": spend,
  "tool.requested": ({ data: { call, name, arguments: args } }, { open, words }) => {
    if (open.size < OPEN_MAX) open.set(call, fingerprintCall(name, args, words));
  },
  "file.changed": ({ data }, trajectory) => {
    const short = data.path.slice(0, PATH_CHARACTERS_MAX);
    trajectory.files = [...trajectory.files.filter((each) => each !== short), short].slice(-FILES_MAX);
  },
  "tool.ended": (event, trajectory) => applyEndedCall(trajectory, event),
  "todo.changed": ({ seq, data: { todo } }, trajectory) => {
    const done = todo.filter(({ status }) => status === "completed").length;
    if (done > trajectory.todoDone) noteProgress(trajectory, seq, "an item of its to-do list is done");
    trajectory.todoDone = done;
  },
  "artifact.stored": ({ seq }, trajectory) => noteProgress(trajectory, seq, "an artifact was stored"),
  "message.received": ({ seq, data }, trajectory) => {
    // A new message resets the idle steps.
    if (data.source === "user") noteProgress(trajectory, seq, "a person sent it a message", { byPerson: true });
  },
  "permission.answered": ({ seq, data }, trajectory) => {
    if (data.answer !== "deny") noteProgress(trajectory, seq, "a person answered its question", { byPerson: true });
  },
  "guardian.decided": ({ seq, data: { decision, findings } }, trajectory) => {
    const detectors = findings.map(({ detector }) => detector);
    trajectory.standing = { decision, seq, step: trajectory.activeSteps, detectors };
    trajectory.decidedSeq = seq;
    trajectory.isKnownDuplicate ||= detectors.includes("duplicate");
    trajectory.failing = null;
  },
  "guardian.settled": ({ data }, trajectory) => {
    trajectory.standing = null;
    trajectory.unheeded = data.effect === "progress" ? 0 : trajectory.unheeded + 1;
  },
  "guardian.judged": ({ seq, data: { coherence, text, costUsd } }, trajectory) => {
    const { judged, activeSteps: step } = trajectory;
    trajectory.judged = { calls: judged.calls + 1, costUsd: judged.costUsd + (costUsd ?? 0), step, coherence, text, seq };
  },
};

function applyWorking(_: unknown, trajectory: Trajectory): void {
  trajectory.status = "working";
  trajectory.stuck = null;
}

function applyCreated({ at, data }: EventOf<"run.created">, trajectory: Trajectory): void {
  const { guardian, harness } = AgentDefinition.parse(data.agent.definition);
  trajectory.owner = data.owner ?? LOCAL_OWNER;
  trajectory.agent = data.agent.name;
  trajectory.session = data.session;
  trajectory.task = data.task.slice(0, TASK_CHARACTERS_MAX);
  trajectory.words = taskWords(data.task);
  trajectory.parent = data.parent?.run ?? null;
  // A fork begins with the events of the other run.
  trajectory.root = data.run === trajectory.run ? null : data.run;
  trajectory.createdAt = at;
  trajectory.asked = guardian ?? {};
  trajectory.isAttended = harness.onAsk === "wait";
}

/** What the guardian knows of the run before the fork is not the fork's own doing. */
function applyForked({ at, seq, data }: EventOf<"run.forked">, trajectory: Trajectory): void {
  const { agent, task, words, asked, isAttended, root, todoDone } = trajectory;
  Object.assign(trajectory, emptyTrajectory(data.run), { agent, task, words, asked, isAttended, root, todoDone, seq, createdAt: at });
  trajectory.owner = data.owner ?? LOCAL_OWNER;
  trajectory.session = data.session;
  trajectory.status = "held";
}

function spend({ data: { usage, costUsd } }: EventOf<"model.ended" | "gateway.called">, trajectory: Trajectory): void {
  trajectory.tokens += usage.inputTokens + usage.outputTokens;
  trajectory.costUsd += costUsd ?? 0;
}

function textOf(parts: EventOf<"model.ended">["data"]["parts"]): string {
  return parts
    .flatMap((part) => (part.kind === "text" ? [part.text] : []))
    .join(" ")
    .slice(0, WORDS_CHARACTERS_MAX);
}
