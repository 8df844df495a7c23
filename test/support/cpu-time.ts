/**
 * Returns the milliseconds of processor time that this process has used. Tests measure cost with it, because the wall
 * clock depends on how busy the machine is.
 */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
