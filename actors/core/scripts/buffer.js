// Buffer: the part of Node's that workflows use.
//
// Only scripts that name it get it; see prelude.js. Half of a pair of surrogates becomes U+FFFD, as do bytes that are no
// UTF-8.
(function () {
  "use strict";

  function utf8Bytes(text) {
    const bytes = [];
    for (let at = 0; at < text.length; at += 1) {
      let point = text.charCodeAt(at);
      if (point >= 0xd800 && point < 0xe000) {
        const next = point < 0xdc00 ? text.charCodeAt(at + 1) : 0;
        if (next >= 0xdc00 && next < 0xe000) {
          point = 0x10000 + ((point - 0xd800) << 10) + (next - 0xdc00);
          at += 1;
        } else {
          point = 0xfffd;
        }
      }
      if (point < 0x80) {
        bytes.push(point);
        continue;
      }
      const more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
      bytes.push([0, 0xc0, 0xe0, 0xf0][more] | (point >> (6 * more)));
      for (let left = more - 1; left >= 0; left -= 1) bytes.push(0x80 | ((point >> (6 * left)) & 0x3f));
    }
    return Uint8Array.from(bytes);
  }

  function utf8Text(bytes) {
    const units = [];
    let at = 0;
    while (at < bytes.length) {
      const lead = bytes[at++];
      if (lead < 0x80) {
        units.push(lead);
        continue;
      }
      const more = lead >= 0xc2 && lead < 0xe0 ? 1 : lead >= 0xe0 && lead < 0xf0 ? 2 : lead >= 0xf0 && lead < 0xf5 ? 3 : 0;
      let point = lead & (0x3f >> more);
      // The second byte excludes what has a shorter form, halves of pairs, and what is above U+10FFFF.
      let lowest = lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80;
      let highest = lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf;
      let left = more;
      while (left > 0 && at < bytes.length && bytes[at] >= lowest && bytes[at] <= highest) {
        point = (point << 6) | (bytes[at++] & 0x3f);
        lowest = 0x80;
        highest = 0xbf;
        left -= 1;
      }
      if (more === 0 || left > 0) units.push(0xfffd);
      else if (point < 0x10000) units.push(point);
      else units.push(0xd800 + ((point - 0x10000) >> 10), 0xdc00 + ((point - 0x10000) & 0x3ff));
    }
    return unitsText(units);
  }

  function unitsText(units) {
    let text = "";
    for (let at = 0; at < units.length; at += 4096) text += String.fromCharCode.apply(null, units.slice(at, at + 4096));
    return text;
  }

  const encodings = {
    utf8: { bytes: utf8Bytes, text: utf8Text },
    hex: {
      bytes(text) {
        const digits = /^(?:[0-9a-fA-F]{2})*/.exec(text)[0];
        return Uint8Array.fromHex(digits);
      },
      text: (bytes) => bytes.toHex(),
    },
    base64: {
      bytes(text) {
        const end = text.indexOf("=");
        let plain = (end < 0 ? text : text.slice(0, end)).replace(/-/g, "+").replace(/_/g, "/");
        plain = plain.replace(/[^A-Za-z0-9+/]/g, "");
        return Uint8Array.fromBase64(plain.length % 4 === 1 ? plain.slice(0, -1) : plain);
      },
      text: (bytes) => bytes.toBase64(),
    },
    latin1: {
      bytes: (text) => Uint8Array.from(text.split(""), (unit) => unit.charCodeAt(0)),
      text: unitsText,
    },
    ascii: {
      bytes: (text) => encodings.latin1.bytes(text),
      text: (bytes) => unitsText(bytes.map((byte) => byte & 0x7f)),
    },
    utf16le: {
      bytes: (text) => new Uint8Array(Uint16Array.from(text.split(""), (unit) => unit.charCodeAt(0)).buffer),
      text(bytes) {
        const units = [];
        for (let at = 0; at + 1 < bytes.length; at += 2) units.push(bytes[at] | (bytes[at + 1] << 8));
        return unitsText(units);
      },
    },
    base64url: {
      bytes: (text) => encodings.base64.bytes(text),
      text: (bytes) => bytes.toBase64({ alphabet: "base64url", omitPadding: true }),
    },
  };
  const otherNames = { "utf-8": "utf8", binary: "latin1", ucs2: "utf16le", "ucs-2": "utf16le", "utf-16le": "utf16le" };

  function encodingOf(name) {
    const lower = String(name ?? "utf8").toLowerCase();
    const found = encodings[otherNames[lower] ?? lower];
    if (found === undefined) throw new TypeError("Unknown encoding: " + name);
    return found;
  }

  function view(buffer, offset, bytes) {
    if (!Number.isInteger(offset) || offset < 0 || offset + bytes > buffer.length) {
      throw new RangeError('The value of "offset" is out of range: ' + offset);
    }
    return new DataView(buffer.buffer, buffer.byteOffset + offset, bytes);
  }

  class Buffer extends Uint8Array {
    static from(value, encodingOrOffset, length) {
      if (typeof value === "string") return over(encodingOf(encodingOrOffset).bytes(value));
      if (value instanceof ArrayBuffer) return new Buffer(value, encodingOrOffset, length);
      if (value !== null && typeof value === "object") {
        if (value.type === "Buffer" && Array.isArray(value.data)) return new Buffer(value.data);
        if (typeof value.length === "number") return new Buffer(Array.from(value));
      }
      throw new TypeError("Buffer.from takes a string, an array or a buffer.");
    }

    static alloc(size, fill, encoding) {
      if (!Number.isInteger(size) || size < 0) throw new RangeError("The size of a buffer is a whole number.");
      const buffer = new Buffer(size);
      return fill === undefined ? buffer : buffer.fill(fill, 0, size, encoding);
    }

    static allocUnsafe(size) {
      return Buffer.alloc(size);
    }

    static concat(list, totalLength) {
      const total = totalLength ?? list.reduce((sum, part) => sum + part.length, 0);
      const whole = Buffer.alloc(total);
      let end = 0;
      for (const part of list) {
        whole.set(part.subarray(0, total - end), end);
        end = Math.min(total, end + part.length);
      }
      return whole;
    }

    static isBuffer(value) {
      return value instanceof Buffer;
    }

    static isEncoding(name) {
      const lower = String(name).toLowerCase();
      return Object.hasOwn(encodings, lower) || Object.hasOwn(otherNames, lower);
    }

    static byteLength(value, encoding) {
      return typeof value === "string" ? encodingOf(encoding).bytes(value).length : value.byteLength;
    }

    static compare(one, other) {
      for (let at = 0; at < Math.min(one.length, other.length); at += 1) {
        if (one[at] !== other[at]) return one[at] < other[at] ? -1 : 1;
      }
      return Math.sign(one.length - other.length);
    }

    toString(encoding, start, end) {
      return encodingOf(encoding).text(Uint8Array.prototype.slice.call(plain(this), start, end));
    }

    toJSON() {
      return { type: "Buffer", data: Array.from(this) };
    }

    // As in Node, a slice is a view of the same bytes.
    slice(start, end) {
      return this.subarray(start, end);
    }

    equals(other) {
      return Buffer.compare(this, other) === 0;
    }

    compare(other) {
      return Buffer.compare(this, other);
    }

    copy(target, targetStart = 0, start = 0, end = this.length) {
      const part = this.subarray(start, Math.min(end, start + Math.max(0, target.length - targetStart)));
      target.set(part, targetStart);
      return part.length;
    }

    fill(value, start, end, encoding) {
      if (typeof value !== "string") return super.fill(value, start, end);
      const bytes = encodingOf(encoding).bytes(value);
      const part = this.subarray(start, end);
      for (let at = 0; at < part.length; at += 1) part[at] = bytes.length ? bytes[at % bytes.length] : 0;
      return this;
    }

    write(text, offset = 0, length, encoding) {
      if (typeof offset === "string") return this.write(text, 0, undefined, offset);
      if (typeof length === "string") return this.write(text, offset, undefined, length);
      const bytes = encodingOf(encoding).bytes(text);
      const part = bytes.subarray(0, Math.min(length ?? bytes.length, Math.max(0, this.length - offset)));
      this.set(part, offset);
      return part.length;
    }

    readUIntBE(offset, bytes) {
      const from = view(this, offset, bytes);
      let value = 0;
      for (let at = 0; at < bytes; at += 1) value = value * 256 + from.getUint8(at);
      return value;
    }

    readUIntLE(offset, bytes) {
      const from = view(this, offset, bytes);
      let value = 0;
      for (let at = bytes - 1; at >= 0; at -= 1) value = value * 256 + from.getUint8(at);
      return value;
    }

    readIntBE(offset, bytes) {
      return signed(this.readUIntBE(offset, bytes), bytes);
    }

    readIntLE(offset, bytes) {
      return signed(this.readUIntLE(offset, bytes), bytes);
    }
  }

  function over(bytes) {
    return new Buffer(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  function plain(buffer) {
    return new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.length);
  }

  function signed(value, bytes) {
    return value < 2 ** (8 * bytes - 1) ? value : value - 2 ** (8 * bytes);
  }

  // readUInt16BE, writeDoubleLE and so on; Node also spells UInt as Uint.
  const numbers = { UInt8: 1, Int8: 1, UInt16: 2, Int16: 2, UInt32: 4, Int32: 4, Float: 4, Double: 8 };
  Object.assign(numbers, { BigInt64: 8, BigUInt64: 8 });
  const typeNames = { Float: "Float32", Double: "Float64" };
  for (const [name, bytes] of Object.entries(numbers)) {
    const type = (typeNames[name] ?? name).replace("UInt", "Uint");
    const get = DataView.prototype["get" + type];
    const set = DataView.prototype["set" + type];
    for (const order of bytes === 1 ? [""] : ["LE", "BE"]) {
      const methods = {
        ["read" + name + order](offset = 0) {
          return get.call(view(this, offset, bytes), 0, order === "LE");
        },
        ["write" + name + order](value, offset = 0) {
          set.call(view(this, offset, bytes), 0, value, order === "LE");
          return offset + bytes;
        },
      };
      for (const [method, body] of Object.entries(methods)) {
        for (const spelling of new Set([method, method.replace("UInt", "Uint")])) {
          Object.defineProperty(Buffer.prototype, spelling, { value: body, configurable: true, writable: true });
        }
      }
    }
  }

  globalThis.Buffer = Buffer;
});
