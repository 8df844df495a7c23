import {
  Ban,
  Circle,
  CircleCheck,
  CircleDashed,
  CircleDot,
  CircleHelp,
  CircleX,
  Clock,
  type LucideIcon,
  RotateCcw,
  SkipForward,
} from "lucide-react";

/** The state of a step or task that its node shows. `unused`: another case was chosen, or the work has ended. */
export type NodeState =
  | "pending"
  | "running"
  | "asks"
  | "waiting"
  | "retrying"
  | "completed"
  | "failed"
  | "cancelled"
  | "skipped"
  | "unused";

const icons: Readonly<Record<NodeState, LucideIcon>> = {
  pending: Circle,
  running: CircleDot,
  asks: CircleHelp,
  waiting: Clock,
  retrying: RotateCcw,
  completed: CircleCheck,
  failed: CircleX,
  cancelled: Ban,
  skipped: SkipForward,
  unused: CircleDashed,
};

export const stateWords: Readonly<Record<NodeState, string>> = {
  pending: "pending",
  running: "running",
  asks: "needs input",
  waiting: "waiting",
  retrying: "retrying",
  completed: "done",
  failed: "failed",
  cancelled: "cancelled",
  skipped: "skipped",
  unused: "not reached",
};

export function StateIcon({ state }: { state: NodeState }) {
  const Icon = icons[state];
  return <Icon aria-hidden="true" />;
}
