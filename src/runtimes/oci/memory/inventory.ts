/**
 * CRIU's images say which namespaces the processes had, and which CRIU had. Processes are stored from outside their
 * sandbox, but restored from inside a new one, where CRIU must create no namespaces. So the inventory, a protobuf
 * message, gets the processes' namespaces as CRIU's own.
 */
interface Field {
  /** The field's number and wire type. */
  key: number;
  value: number | Buffer;
}

const VARINT = 0;
const BYTES = 2;
/** The fields of `task_kobj_ids_entry` that name namespaces begin here. */
const FIRST_NAMESPACE = 5;
/** The field of `inventory_entry` that describes CRIU itself. */
const ROOT_IDS = 3;

/** Returns the inventory's file with the namespaces of a process. Throws a `RangeError` for another format. */
export function withNamespacesOf(inventory: Buffer, processIds: Buffer): Buffer {
  // The inventory has one magic number, and each other image has two.
  const [message, ids] = [readMessage(inventory, 4), readMessage(processIds, 8)];
  const own = new Map(parse(ids).map(({ key, value }) => [key, value]));
  if (!parse(message).some(({ key }) => key >> 3 === ROOT_IDS)) throw new RangeError("the inventory names no namespaces");
  const fields = parse(message).map((field) => {
    if (field.key >> 3 !== ROOT_IDS || typeof field.value === "number") return field;
    const patched = parse(field.value).map(({ key, value }) => ({
      key,
      value: key >> 3 >= FIRST_NAMESPACE ? (own.get(key) ?? value) : value,
    }));
    return { key: field.key, value: encode(patched) };
  });
  const bytes = encode(fields);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(bytes.length);
  return Buffer.concat([inventory.subarray(0, 4), length, bytes]);
}

function readMessage(file: Buffer, at: number): Buffer {
  const length = file.readUInt32LE(at);
  if (at + 4 + length > file.length) throw new RangeError("an image is shorter than it says");
  return file.subarray(at + 4, at + 4 + length);
}

function parse(bytes: Buffer): Field[] {
  const fields: Field[] = [];
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes.readUInt8(at);
      at += 1;
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const key = varint();
    if ((key & 7) === VARINT) fields.push({ key, value: varint() });
    else if ((key & 7) === BYTES) {
      const length = varint();
      if (at + length > bytes.length) throw new RangeError("a field is longer than its message");
      fields.push({ key, value: bytes.subarray(at, at + length) });
      at += length;
    } else throw new RangeError(`unknown wire type ${key & 7}`);
  }
  return fields;
}

function encode(fields: readonly Field[]): Buffer {
  return Buffer.concat(
    fields.flatMap(({ key, value }) =>
      typeof value === "number" ? [encodeVarint(key), encodeVarint(value)] : [encodeVarint(key), encodeVarint(value.length), value],
    ),
  );
}

function encodeVarint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  return Buffer.from([...bytes, rest]);
}
