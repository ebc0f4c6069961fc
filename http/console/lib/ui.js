// What every component imports: Preact, its hooks, signals, and `html`, the template tag for markup.

import { Component, createContext, Fragment, h, render } from "../vendor/preact.mjs";
import { useCallback, useContext, useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "../vendor/hooks.mjs";
import { batch, computed, effect, signal, useComputed, useSignal, useSignalEffect } from "../vendor/signals.mjs";
import htm from "../vendor/htm.mjs";

const html = htm.bind(h);

export {
  batch, Component, computed, createContext, effect, Fragment, h, html, render, signal, useCallback, useComputed,
  useContext, useEffect, useId, useLayoutEffect, useMemo, useRef, useSignal, useSignalEffect, useState,
};
