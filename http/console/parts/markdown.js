// Texts in Markdown as elements: headings, lists, quotes, code, links, bold and italic. No HTML is ever parsed: what is
// not one of these is shown as it is written.

import { h, html } from "../lib/ui.js";

const BULLET = /^\s*[-*+]\s+/;
const NUMBER = /^\s*\d+[.)]\s+/;
const HEADING = /^(#{1,6})\s+/;
const FENCE = /^\s*```/;
const QUOTE = /^\s*>\s?/;
const starts = [BULLET, NUMBER, HEADING, FENCE, QUOTE];
const INLINE = /`([^`]+)`|\*\*([^*]+)\*\*|__([^_]+)__|\*([^*\s][^*]*)\*|\[([^\]]+)\]\(([^)\s]+)\)|(https?:\/\/[^\s<>"')]+)/g;

// The headings of the text begin at `level`, so that they fit below those of the page.
export function Markdown({ text, level = 3 }) {
  return html`<div class="markdown">${blocks(String(text).replaceAll("\r", "").split("\n"), level)}</div>`;
}

function blocks(lines, level) {
  const found = [];
  let at = 0;
  // The lines from here on that a test holds for.
  const take = (holds) => {
    const from = at;
    while (at < lines.length && holds(lines[at])) at += 1;
    return lines.slice(from, at);
  };
  while (at < lines.length) {
    const line = lines[at];
    if (!line.trim()) {
      at += 1;
    } else if (FENCE.test(line)) {
      at += 1;
      const code = take((each) => !FENCE.test(each));
      at += 1;
      found.push(html`<pre tabindex="0"><code>${code.join("\n")}</code></pre>`);
    } else if (HEADING.test(line)) {
      at += 1;
      const depth = Math.min(6, level - 1 + HEADING.exec(line)[1].length);
      found.push(h(`h${depth}`, null, inline(line.replace(HEADING, ""))));
    } else if (BULLET.test(line)) {
      found.push(html`<ul>${take((each) => BULLET.test(each)).map((each) => html`<li>${inline(each.replace(BULLET, ""))}</li>`)}</ul>`);
    } else if (NUMBER.test(line)) {
      found.push(html`<ol>${take((each) => NUMBER.test(each)).map((each) => html`<li>${inline(each.replace(NUMBER, ""))}</li>`)}</ol>`);
    } else if (QUOTE.test(line)) {
      found.push(html`<blockquote>${blocks(take((each) => QUOTE.test(each)).map((each) => each.replace(QUOTE, "")), level)}</blockquote>`);
    } else {
      at += 1;
      const rest = take((each) => each.trim() && !starts.some((start) => start.test(each)));
      found.push(html`<p>${[line, ...rest].map((each, number) => [number > 0 && html`<br />`, ...inline(each)])}</p>`);
    }
  }
  return found;
}

function inline(text) {
  const found = [];
  let from = 0;
  for (const match of text.matchAll(INLINE)) {
    const [whole, code, bold, strong, italic, label, target, bare] = match;
    found.push(text.slice(from, match.index));
    if (code !== undefined) found.push(html`<code>${code}</code>`);
    else if (bold ?? strong) found.push(html`<b>${bold ?? strong}</b>`);
    else if (italic !== undefined) found.push(html`<i>${italic}</i>`);
    else found.push(html`<${Outside} url=${target ?? bare}>${label ?? whole}</${Outside}>`);
    from = match.index + whole.length;
  }
  found.push(text.slice(from));
  return found;
}

// A link that somebody else has written: only addresses of pages and of mail become one.
export function Outside({ url, children }) {
  if (!/^(https?:|mailto:|#|\/(?![/\\]))/i.test(url)) return html`<span>${children}</span>`;
  const own = url.startsWith("#") || url.startsWith("/");
  return html`<a href=${url} ...${own ? {} : { target: "_blank", rel: "noopener noreferrer" }}>${children}</a>`;
}
