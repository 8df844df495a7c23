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
