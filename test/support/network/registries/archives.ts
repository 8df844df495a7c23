import { crc32, gzipSync } from "node:zlib";

/** The path and content of each file, in order. */
export type ArchiveFiles = readonly (readonly [path: string, content: string | Buffer, mode?: number])[];

export function tarGz(files: ArchiveFiles): Buffer {
  return gzipSync(tar(files));
}

function tar(files: ArchiveFiles): Buffer {
  const parts = files.flatMap(([path, content, mode = 0o644]) => {
    const body = Buffer.from(content as string);
    const header = Buffer.alloc(512);
    header.write(path, 0);
    header.write(`${mode.toString(8).padStart(7, "0")}\0`, 100);
    header.write("0000000\0".repeat(2), 108);
    header.write(`${body.length.toString(8).padStart(11, "0")}\0`, 124);
    header.write("00000000000\0", 136);
    header.write("        0", 148);
    header.write("ustar\0" + "00", 257);
    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
    return [header, body, Buffer.alloc((512 - (body.length % 512)) % 512)];
  });
  return Buffer.concat([...parts, Buffer.alloc(1024)]);
}

/** Stores files uncompressed, which every reader supports. */
export function zip(files: ArchiveFiles): Buffer {
  const local: Buffer[] = [];
  const central: Buffer[] = [];
  let offset = 0;
  for (const [path, content] of files) {
    const name = Buffer.from(path);
    const body = Buffer.from(content as string);
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    // January 1, 1980.
    common.writeUInt16LE(0x21, 8);
    common.writeUInt32LE(crc32(body), 10);
    common.writeUInt32LE(body.length, 14);
    common.writeUInt32LE(body.length, 18);
    common.writeUInt16LE(name.length, 22);
    const entry = Buffer.concat([Buffer.from("PK\x03\x04"), common, name, body]);
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE(offset, 10);
    central.push(Buffer.concat([Buffer.from("PK\x01\x02"), Buffer.from([20, 0]), common, tail, name]));
    local.push(entry);
    offset += entry.length;
  }
  const directory = Buffer.concat(central);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(files.length, 4);
  end.writeUInt16LE(files.length, 6);
  end.writeUInt32LE(directory.length, 8);
  end.writeUInt32LE(offset, 12);
  return Buffer.concat([...local, directory, Buffer.from("PK\x05\x06"), end]);
}

/** Builds a Debian package: an ar archive with three members. */
export function deb(control: string, files: ArchiveFiles): Buffer {
  const members: [string, Buffer][] = [
    ["debian-binary", Buffer.from("2.0\n")],
    ["control.tar.gz", tarGz([["./control", control]])],
    ["data.tar.gz", tarGz(files)],
  ];
  const parts = members.flatMap(([name, body]) => {
    const header = `${name.padEnd(16)}${"0".padEnd(12)}${"0".padEnd(6)}${"0".padEnd(6)}${"100644".padEnd(8)}${String(body.length).padEnd(10)}\`\n`;
    return [Buffer.from(header), body, Buffer.alloc(body.length % 2, "\n")];
  });
  return Buffer.concat([Buffer.from("!<arch>\n"), ...parts]);
}
