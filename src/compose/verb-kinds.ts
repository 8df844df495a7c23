/** What each verb of a group gives: an answer, or a stream of them. */
export const runKinds = {
  start: "answer",
  get: "answer",
  list: "answer",
  events: "stream",
  allEvents: "stream",
  lastPosition: "answer",
  wait: "answer",
  send: "answer",
  answer: "answer",
  pause: "answer",
  resume: "answer",
  continue: "answer",
  prioritize: "answer",
  adopt: "answer",
  queue: "answer",
  stop: "answer",
  remove: "answer",
  check: "answer",
} as const;

export const agentKinds = {
  list: "answer",
  show: "answer",
  validate: "answer",
  filesAt: "answer",
  judge: "answer",
  trust: "answer",
  trusted: "answer",
  revoke: "answer",
} as const;

export const sandboxKinds = {
  create: "answer",
  hold: "answer",
  get: "answer",
  list: "answer",
  changedFiles: "answer",
  stats: "answer",
  pause: "answer",
  resume: "answer",
  snapshot: "answer",
  fork: "answer",
  remove: "answer",
  sweep: "answer",
  snapshots: "answer",
  removeSnapshot: "answer",
} as const;

export const sessionKinds = {
  get: "answer",
  list: "answer",
  diff: "answer",
  unapplied: "answer",
  patch: "stream",
  changes: "stream",
  note: "answer",
  apply: "answer",
  undo: "answer",
  points: "answer",
  files: "answer",
  readFile: "stream",
  fork: "answer",
  branch: "answer",
  discard: "answer",
  unlock: "answer",
  cleanup: "answer",
} as const;

export const specKinds = {
  create: "answer",
  get: "answer",
  list: "answer",
  execute: "answer",
  decide: "answer",
  edit: "answer",
  cancel: "answer",
  wait: "answer",
  events: "stream",
  diff: "answer",
  export: "answer",
  remove: "answer",
} as const;

export const shipKinds = {
  start: "answer",
  get: "answer",
  list: "answer",
  watch: "answer",
  merge: "answer",
  resume: "answer",
  cancel: "answer",
} as const;

export const mergeKinds = {
  start: "answer",
  get: "answer",
  list: "answer",
  events: "stream",
  wait: "answer",
  resolve: "answer",
  cancel: "answer",
  pause: "answer",
  resume: "answer",
  remove: "answer",
} as const;

export const workflowKinds = {
  get: "answer",
  list: "answer",
  events: "stream",
  wait: "answer",
  cancel: "answer",
  pause: "answer",
  resume: "answer",
  remove: "answer",
  validate: "answer",
  start: "answer",
  signal: "answer",
  approve: "answer",
  retry: "answer",
} as const;
