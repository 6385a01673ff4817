// Reads the history that the page holds. The other side is `embed.rs`.

/** Numbers and texts, one after the other. */
class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  number() {
    let number = 0;
    let scale = 1;
    for (;;) {
      const byte = this.bytes[this.at++];
      number += (byte & 0x7f) * scale;
      if (byte < 0x80) return number;
      scale *= 128;
    }
  }

  signed() {
    return unzigzag(this.number());
  }

  text() {
    return this.letters(this.number());
  }

  /** An integer or a text. */
  either() {
    const head = this.number();
    return head % 2 === 0 ? unzigzag(head / 2) : this.letters((head - 1) / 2);
  }

  letters(length) {
    const text = decoder.decode(this.bytes.subarray(this.at, this.at + length));
    this.at += length;
    return text;
  }
}

const decoder = new TextDecoder();

function unzigzag(number) {
  return number % 2 === 0 ? number / 2 : -(number + 1) / 2;
}

/** From letters to a reader of what they stand for. */
export async function unpacked(letters) {
  const packed = Uint8Array.from(atob(letters.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Reader(new Uint8Array(await new Response(stream).arrayBuffer()));
}

const CLOCKS = ["none", "nanoseconds", "events"];

/** What is known of every transaction but its operations. */
export function readFrame(reader) {
  const clock = CLOCKS[reader.number()];
  const count = reader.number();
  const sessions = [];
  for (let at = 0, left = reader.number(), first = 0; at < left; at++) {
    const name = reader.text();
    const size = reader.number();
    sessions.push({ name, first, end: first + size });
    first += size;
  }
  const flags = Uint8Array.from({ length: count }, () => reader.number());
  const start = new Float64Array(count).fill(NaN);
  const finish = new Float64Array(count).fill(NaN);
  let time = 0;
  for (let txn = 0; txn < count; txn++) {
    if ((flags[txn] & 4) === 0) start[txn] = time += reader.signed();
    if ((flags[txn] & 8) === 0) finish[txn] = time += reader.signed();
  }
  const names = [];
  let number = 0;
  for (let txn = 0; txn < count; txn++) {
    const name = reader.either();
    if (typeof name === "number") number += name;
    names.push(typeof name === "number" ? `T${number}` : name);
  }
  const lines = new Float64Array(count);
  let line = 0;
  for (let txn = 0; txn < count; txn++) lines[txn] = line += reader.signed();
  const witness = reader.text();
  const order = new Int32Array(reader.number());
  for (let at = 0, txn = 0; at < order.length; at++) order[at] = txn += reader.signed();
  return { clock, count, sessions, flags, start, finish, names, lines, witness, order };
}

/** Adds the operations of a block to those of each transaction. `keys` grows by new names. */
export function readOps(reader, keys, ops) {
  let txn = 0;
  for (let left = reader.number(); left > 0; left--) {
    txn += reader.signed();
    const list = [];
    for (let more = reader.number(); more > 0; more--) list.push(readOp(reader, keys));
    ops[txn] = list;
  }
}

function readKey(reader, keys) {
  const key = reader.number();
  if (key === keys.length) keys.push(reader.text());
  return key;
}

function readOp(reader, keys) {
  const kind = reader.number();
  if (kind === 7) return readOther(reader, keys);
  const key = readKey(reader, keys);
  const name = keys[key];
  switch (kind) {
    case 0:
    case 6:
      return { text: `r ${name}=?`, key };
    case 1: {
      const read = reader.either();
      return { text: `r ${name}=${read}`, key, read };
    }
    case 2: {
      const written = reader.either();
      return { text: `w ${name}=${written}`, key, written };
    }
    case 3: {
      const written = reader.either();
      return { text: `append ${name} ${written}`, key, written, appends: true };
    }
    case 4:
      return readList(reader, name, key);
    default:
      return { text: `delete ${name}`, key, written: "nil" };
  }
}

/** A list, of which the page may hold only the last elements. */
function readList(reader, name, key) {
  const length = reader.number();
  const list = [];
  for (let left = Math.min(length, 12); left > 0; left--) list.push(reader.either());
  const start = length > list.length ? "… " : "";
  const read = list.length > 0 ? list[list.length - 1] : undefined;
  return { text: `r ${name}=[${start}${list.join(" ")}]`, key, read, list, length };
}

function readOther(reader, keys) {
  const op = {};
  if (reader.number() === 1) op.key = readKey(reader, keys);
  if (reader.number() === 1) op.written = reader.either();
  op.text = reader.text();
  return op;
}
