/* Reader of binary schedules; docs/schedule.md describes the format. C99, no allocation, no library, reads nothing outside of its bytes.
 *
 *     remat_schedule schedule;
 *     if (remat_open(&schedule, data, bytes) != REMAT_OK) return;
 *     remat_step step;
 *     while (remat_next(&schedule, &step)) switch (step.kind) {
 *         case REMAT_RUN:      ... op number step.id runs, for the first time or again
 *         case REMAT_FREE:     ... storage number step.id is given up
 *         case REMAT_PAGE_OUT: ... it moves to the second memory
 *         case REMAT_PAGE_IN:  ... it comes back
 *         case REMAT_PLACE:     ... storage number step.id, which the next step makes or brings back, lies at byte step.offset of the block
 *         case REMAT_DUPLICATE: ... it is there and stays; what the next step makes of it once more goes to step.offset, and is not read
 *         case REMAT_WORKSPACE: ... the op that runs next has its workspace at step.offset
 *     }
 *
 * The last three come where schedule.block is not 0: then a static array of that many bytes holds all that the steps need.
 */
#ifndef REMAT_SCHEDULE_H
#define REMAT_SCHEDULE_H

#include <stddef.h>
#include <stdint.h>

enum remat_kind {
    REMAT_RUN = 0,
    REMAT_FREE = 1,
    REMAT_PAGE_OUT = 2,
    REMAT_PAGE_IN = 3,
    REMAT_PLACE = 4,
    REMAT_DUPLICATE = 5,
    REMAT_WORKSPACE = 6
};

enum remat_result {
    REMAT_OK = 0,
    REMAT_MAGIC,     /* the bytes do not begin as schedules do */
    REMAT_VERSION,   /* a version that this reader does not know */
    REMAT_TRUNCATED, /* they end too early */
    REMAT_CHECKSUM,  /* the checksum at the end is that of other bytes */
    REMAT_NUMBER,    /* a number is too large for its place, or longer than it needs to be */
    REMAT_RANGE,     /* a step or a size names something that is not there, or an offset is behind the block */
    REMAT_TRAILING   /* bytes between the last step and the checksum */
};

typedef struct {
    enum remat_kind kind;
    uint32_t id;     /* of the op for REMAT_RUN, of the storage for all others but REMAT_WORKSPACE */
    uint64_t offset; /* in the block, for the last three kinds */
} remat_step;

typedef struct {
    const uint8_t *at, *end;
} remat_cursor;

typedef struct {
    uint32_t ops, storages, steps;
    uint64_t peak;        /* most bytes in memory at once, workspace of ops included */
    uint64_t second_peak; /* most bytes in the second memory at once */
    uint64_t block;     /* bytes of the block that everything lies in; 0 if there are no offsets */
    uint64_t alignment; /* every offset is a multiple of this */
    uint64_t outputs;   /* results that stay to the end lie in the first so many bytes of the block; 0 if nothing is said of that */
    unsigned kind_bits; /* of a step; 3 if there are offsets */
    remat_cursor table, indexes, body;
    uint32_t left; /* steps still to come */
    uint32_t expected[8], last[8]; /* what the next step of each kind is expected to name, what the last one named */
} remat_schedule;

/* A number of seven bits a byte, lowest first, in as few bytes as it needs. */
static inline enum remat_result remat_number(remat_cursor *cursor, uint64_t *value) {
    *value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (cursor->at == cursor->end) return REMAT_TRUNCATED;
        uint8_t byte = *cursor->at++;
        uint64_t bits = byte & 0x7f;
        if ((bits << shift) >> shift != bits || (byte == 0 && shift > 0)) return REMAT_NUMBER;
        *value |= bits << shift;
        if (byte < 0x80) return REMAT_OK;
    }
    return REMAT_NUMBER;
}

static inline enum remat_result remat_count(remat_cursor *cursor, uint32_t *count) {
    uint64_t value;
    enum remat_result result = remat_number(cursor, &value);
    if (result != REMAT_OK) return result;
    if (value >= UINT64_C(1) << 28) return REMAT_NUMBER;
    *count = (uint32_t)value;
    return REMAT_OK;
}

/* CRC-32 as in Ethernet and PNG. */
static inline uint32_t remat_checksum(const uint8_t *at, const uint8_t *end) {
    uint32_t sum = UINT32_MAX;
    for (; at != end; at++) {
        sum ^= *at;
        for (int bit = 0; bit < 8; bit++) sum = (sum >> 1) ^ (UINT32_C(0xEDB88320) & (0 - (sum & 1)));
    }
    return ~sum;
}

static inline enum remat_result remat_offset(remat_schedule *schedule, uint64_t *offset) {
    enum remat_result result = remat_number(&schedule->body, offset);
    if (result != REMAT_OK) return result;
    if (*offset > schedule->block / schedule->alignment) return REMAT_RANGE;
    *offset *= schedule->alignment;
    return REMAT_OK;
}

static inline enum remat_result remat_read_step(remat_schedule *schedule, remat_step *step) {
    uint64_t code;
    enum remat_result result = remat_number(&schedule->body, &code);
    if (result != REMAT_OK) return result;
    if (code > UINT32_MAX) return REMAT_NUMBER;
    unsigned kind = (unsigned)code & ((1u << schedule->kind_bits) - 1);
    if (kind > REMAT_WORKSPACE) return REMAT_RANGE;
    int64_t zigzag = (int64_t)(code >> schedule->kind_bits);
    step->kind = (enum remat_kind)kind;
    step->offset = 0;
    step->id = 0;
    if (kind == REMAT_WORKSPACE) return zigzag ? REMAT_RANGE : remat_offset(schedule, &step->offset);
    int64_t id = (int64_t)schedule->expected[kind] + (zigzag & 1 ? -(zigzag >> 1) - 1 : zigzag >> 1);
    if (id < 0 || id >= (int64_t)(step->kind == REMAT_RUN ? schedule->ops : schedule->storages)) return REMAT_RANGE;
    step->id = (uint32_t)id;
    schedule->expected[kind] = kind == REMAT_RUN || kind == REMAT_PLACE ? step->id + 1 : schedule->last[kind];
    schedule->last[kind] = step->id;
    return kind < REMAT_PLACE ? REMAT_OK : remat_offset(schedule, &step->offset);
}

/* Begins again with the first step. */
static inline void remat_rewind(remat_schedule *schedule, remat_cursor body) {
    schedule->body = body;
    schedule->left = schedule->steps;
    for (int kind = 0; kind < 8; kind++) schedule->expected[kind] = schedule->last[kind] = 0;
}

/* Checks all of the bytes, which must outlive the schedule. Unless the result is REMAT_OK, the schedule must not be used. */
static inline enum remat_result remat_open(remat_schedule *schedule, const void *data, size_t bytes) {
    static const uint8_t magic[4] = {'R', 'M', 'T', 'S'};
    const uint8_t *first = (const uint8_t *)data;
    if (bytes < 4) return REMAT_TRUNCATED;
    for (int i = 0; i < 4; i++)
        if (first[i] != magic[i]) return REMAT_MAGIC;
    if (bytes < 5) return REMAT_TRUNCATED;
    if (first[4] != 1 && first[4] != 2) return REMAT_VERSION;
    if (bytes < 9) return REMAT_TRUNCATED;
    const uint8_t *end = first + bytes - 4;
    uint32_t sum = end[0] | (uint32_t)end[1] << 8 | (uint32_t)end[2] << 16 | (uint32_t)end[3] << 24;
    if (remat_checksum(first, end) != sum) return REMAT_CHECKSUM;

    remat_cursor cursor = {first + 5, end};
    enum remat_result result;
    uint32_t distinct;
    uint64_t value;
    if ((result = remat_count(&cursor, &schedule->ops)) != REMAT_OK) return result;
    if ((result = remat_count(&cursor, &schedule->storages)) != REMAT_OK) return result;
    if ((result = remat_count(&cursor, &schedule->steps)) != REMAT_OK) return result;
    if ((result = remat_number(&cursor, &schedule->peak)) != REMAT_OK) return result;
    if ((result = remat_number(&cursor, &schedule->second_peak)) != REMAT_OK) return result;
    schedule->block = schedule->outputs = 0;
    schedule->alignment = 1;
    schedule->kind_bits = 2;
    if (first[4] == 2) {
        schedule->kind_bits = 3;
        if ((result = remat_number(&cursor, &schedule->block)) != REMAT_OK) return result;
        if ((result = remat_number(&cursor, &schedule->alignment)) != REMAT_OK) return result;
        if (schedule->alignment == 0) return REMAT_RANGE;
        if ((result = remat_number(&cursor, &schedule->outputs)) != REMAT_OK) return result;
        if (schedule->outputs > schedule->block) return REMAT_RANGE;
    }
    if ((result = remat_count(&cursor, &distinct)) != REMAT_OK) return result;
    schedule->table = cursor;
    for (uint32_t i = 0; i < distinct; i++)
        if ((result = remat_number(&cursor, &value)) != REMAT_OK) return result;
    schedule->indexes = cursor;
    for (uint32_t i = 0; i < schedule->storages; i++) {
        if ((result = remat_number(&cursor, &value)) != REMAT_OK) return result;
        if (value >= distinct) return REMAT_RANGE;
    }
    remat_rewind(schedule, cursor);
    for (uint32_t i = 0; i < schedule->steps; i++) {
        remat_step step;
        if ((result = remat_read_step(schedule, &step)) != REMAT_OK) return result;
    }
    if (schedule->body.at != end) return REMAT_TRAILING;
    remat_rewind(schedule, cursor);
    return REMAT_OK;
}

/* The next step of an open schedule; 0 after the last one. */
static inline int remat_next(remat_schedule *schedule, remat_step *step) {
    if (schedule->left == 0) return 0;
    schedule->left--;
    return remat_read_step(schedule, step) == REMAT_OK;
}

/* Bytes of each of the first `count` storages of an open schedule; as many as there are at most. */
static inline void remat_sizes(const remat_schedule *schedule, uint64_t *sizes, uint32_t count) {
    remat_cursor indexes = schedule->indexes;
    for (uint32_t i = 0; i < count && i < schedule->storages; i++) {
        remat_cursor table = schedule->table;
        uint64_t index = 0;
        remat_number(&indexes, &index);
        do {
            remat_number(&table, &sizes[i]);
        } while (index-- > 0);
    }
}

#endif
