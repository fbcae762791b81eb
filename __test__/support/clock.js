'use strict';

/**
 * Stops the clock by which a scorer leaves a store alone that has failed, so that no test depends on how fast it runs.
 *
 * @returns {{ advance: (milliseconds: number) => void, restore: () => void }} `restore` has it go on
 */
function stopClock() {
  const { now } = performance;
  let time = performance.now();
  performance.now = () => time;
  return {
    advance: (milliseconds) => {
      time += milliseconds;
    },
    restore: () => {
      performance.now = now;
    },
  };
}

module.exports = { stopClock };
