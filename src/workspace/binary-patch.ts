import { deflateSync } from "node:zlib";

const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
const LINE_BYTES = 52;

/** Git's patch of a file that is no text: the whole new content, then the whole old one, so that it can be taken back. */
export function renderBinaryPatch(before: Buffer, after: Buffer): string {
  return `GIT binary patch\n${literal(after)}\n${literal(before)}\n`;
}

function literal(content: Buffer): string {
  const packed = deflateSync(content);
  let text = `literal ${content.length}\n`;
  for (let at = 0; at < packed.length; at += LINE_BYTES) {
    const line = packed.subarray(at, at + LINE_BYTES);
    text += `${lengthLetter(line.length)}${base85(line)}\n`;
  }
  return text;
}

/** A to Z for 1 to 26 bytes, a to z for 27 to 52. */
const lengthLetter = (bytes: number) => String.fromCharCode(bytes <= 26 ? 64 + bytes : 70 + bytes);

function base85(bytes: Buffer): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 4) {
    let value = 0;
    for (let index = 0; index < 4; index++) value = value * 256 + (bytes[at + index] ?? 0);
    let word = "";
    for (let digit = 0; digit < 5; digit++) {
      word = (DIGITS[value % 85] ?? "") + word;
      value = Math.floor(value / 85);
    }
    text += word;
  }
  return text;
}
