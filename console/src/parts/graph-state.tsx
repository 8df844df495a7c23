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

/** How a step or a task is, as its node shows it. `unused`: the work went another way, or is over. */
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
  pending: "to come",
  running: "running",
  asks: "asks",
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
