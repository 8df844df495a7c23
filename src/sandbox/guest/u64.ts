import { protocolError } from "./frame.ts";

/** Reads a number. Throws `protocol` beyond 2^53, which no file, offset or clock here comes near. */
export function readU64(bytes: Buffer, at: number, name: string): number {
  const high = bytes.readUInt32LE(at + 4);
  if (high > 0x1f_ffff) throw protocolError(`a number of ${name} exceeds 2^53`);
  return high * 0x1_0000_0000 + bytes.readUInt32LE(at);
}

export function writeU64(target: Buffer, at: number, value: number): void {
  target.writeUInt32LE(value >>> 0, at);
  target.writeUInt32LE(Math.floor(value / 0x1_0000_0000), at + 4);
}
