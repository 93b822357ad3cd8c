// Rows of numbers as they are stored: lines such as {"step": 0, "loss": 4.482544, "recall.W_O2": null}.
// Whatever else a line may hold is left to Python, which reads it or says what is wrong with it.

#include <cstdint>
#include <cstring>

namespace {

const int64_t EXACT = int64_t(1) << 53;  // whole numbers up to here, and powers of ten up to here, are exact in double:
const int POWERS = 22;                   // one operation on them is then correctly rounded
const double TEN[POWERS + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

struct Text {
    const char* at;
    const char* end;

    bool take(char wanted) {
        if (at == end || *at != wanted) return false;
        ++at;
        return true;
    }
    bool digit() const { return at != end && *at >= '0' && *at <= '9'; }
    void blanks() {
        while (at != end && *at == ' ') ++at;
    }
    bool word(const char* wanted) {
        const int64_t length = std::strlen(wanted);
        if (end - at < length || std::memcmp(at, wanted, length)) return false;
        at += length;
        return true;
    }
    // Digits are added to `sum`; how many there were, or -1 if the sum is no longer exact.
    int digits(int64_t& sum) {
        int count = 0;
        for (; digit(); ++at, ++count) {
            sum = 10 * sum + (*at - '0');
            if (sum > EXACT) return -1;
        }
        return count;
    }
    // A key without escapes, from its first quote to its last.
    bool key(const char*& begin) {
        begin = at;
        if (!take('"')) return false;
        while (at != end && *at != '"' && *at != '\\' && static_cast<unsigned char>(*at) >= ' ') ++at;
        return take('"');
    }
    bool number(double& value) {
        const bool minus = take('-');
        const bool zero = at != end && *at == '0';
        int64_t sum = 0, power = 0;
        const int whole = digits(sum);
        if (whole < 1 || (zero && whole > 1)) return false;
        int decimals = 0;
        if (take('.') && (decimals = digits(sum)) < 1) return false;
        if (at != end && (*at == 'e' || *at == 'E')) {
            ++at;
            const bool below = take('-');
            if (!below) take('+');
            if (digits(power) < 1 || power > 400) return false;
            power = below ? -power : power;
        }
        power -= decimals;
        if (power > POWERS || power < -POWERS) return false;
        value = power < 0 ? sum / TEN[-power] : sum * TEN[power];
        if (minus && sum == 0 && decimals == 0) return false;  // for Python a whole −0 is 0
        if (minus) value = -value;
        return true;
    }
};

// Columns are numbered in the order in which their keys come: first those that are known, one after the other in
// `text`, then new ones, of which is noted where they stand in the rows.
struct Keys {
    const char* text;
    const int32_t* ends;
    int known, most;
    const char* rows;
    int32_t *begins, *stops, *seen;
    int total;

    bool is(int k, const char* begin, int64_t length) const {
        const char* name = k < known ? text + (k ? ends[k - 1] : 0) : rows + begins[k];
        const int64_t own = k < known ? ends[k] - (k ? ends[k - 1] : 0) : stops[k] - begins[k];
        return own == length && !std::memcmp(name, begin, length);
    }
    // Most rows have the same keys in the same order, so that which is expected is tried first; -1: too many, or twice.
    int number(const char* begin, int64_t length, int expected, int row) {
        int k = -1;
        for (int tried = 0; tried < total && k < 0; ++tried)
            if (is((expected + tried) % total, begin, length)) k = (expected + tried) % total;
        if (k < 0) {
            if (total == most) return -1;
            k = total++;
            begins[k] = begin - rows;
            stops[k] = begin - rows + length;
            seen[k] = -1;
        }
        if (seen[k] == row) return -1;
        seen[k] = row;
        return k;
    }
};

struct Numbers {
    int32_t *column, *step;
    double* value;
    int count;

    void add(int of, int at, double number) {
        column[count] = of;
        step[count] = at;
        value[count++] = number;
    }
};

// One line: whether it is a row of numbers, and that of this step.
bool read_row(Text& left, Keys& keys, Numbers& numbers, int row, int step) {
    bool says_step = false;
    if (!left.take('{')) return false;
    for (int expected = 0; expected == 0 || left.take(','); ++expected) {
        const char* begin;
        double number = 0;
        left.blanks();
        if (!left.key(begin)) return false;
        const int64_t length = left.at - begin;
        const int column = keys.number(begin, length, expected, row);
        left.blanks();
        if (column < 0 || !left.take(':')) return false;
        left.blanks();
        if (left.word("null")) continue;
        if (!left.number(number)) return false;
        numbers.add(column, step, number);
        says_step = says_step || (length == 6 && !std::memcmp(begin, "\"step\"", 6) && number == step);
    }
    return says_step && left.take('}') && left.take('\n');
}

}  // namespace

// Column, step and value of every number in some lines; `sizes` gets the number of rows and of columns. Returns how many
// numbers there are, or -1 where a line is left to Python. `begins`, `stops` and `seen` have room for `most` columns.
extern "C" int read_rows(const char* rows, int size, int first, const char* text, const int32_t* ends, int known,
                         int most, int32_t* begins, int32_t* stops, int32_t* seen, int32_t* column, int32_t* step,
                         double* value, int32_t* sizes) {
    Text left{rows, rows + size};
    Keys keys{text, ends, known, most, rows, begins, stops, seen, known};
    Numbers numbers{column, step, value, 0};
    int row = 0;
    for (; left.at != left.end; ++row)
        if (!read_row(left, keys, numbers, row, first + row)) return -1;
    sizes[0] = row;
    sizes[1] = keys.total;
    return numbers.count;
}
