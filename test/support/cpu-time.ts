/** Milliseconds of processor time that this process has used. What something costs is measured by this: by the clock, everything takes as long as a busy machine lets it. */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
